#!/usr/bin/env python3
"""How fast sweeps are: 10,000 points of GPT-3 175B on one thread and on two, and how much memory they take.

usage: sweep.py STAGECRAFT SOURCE_DIR [--shard K/N]

Run it on an idle machine: wall times are of no use on a busy one, CPU seconds are of some.
"""
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def measure(program, sweep, threads, options, rows):
    begin = time.monotonic()
    job = subprocess.Popen([program, "sweep", sweep, "--quiet", "--jobs", str(threads), "--output", rows, *options])
    _, status, usage = os.wait4(job.pid, 0)
    job.returncode = os.waitstatus_to_exitcode(status)
    if job.returncode != 0:
        sys.exit(f"sweep.py: exit code {job.returncode}")
    wall = time.monotonic() - begin
    cpu = usage.ru_utime + usage.ru_stime
    return wall, cpu, usage.ru_maxrss * 1024 / 1e6


def main():
    program, source, options = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    sweep = source / "scenarios/sweeps/gpt3-175b-plans.yaml"
    walls = []
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for threads in (1, 2):
            rows = Path(folder) / f"{threads}.jsonl"
            wall, cpu, peak = measure(program, sweep, threads, options, rows)
            text = rows.read_bytes()
            points = text.count(b"\n")
            print(f"{threads} thread{'s' if threads > 1 else ' '}  {points:,} points  {wall:6.1f} s  {points / wall:7.0f}/s  "
                  f"{cpu:6.1f} CPU s  {peak:5.0f} MB", flush=True)
            walls.append(wall)
            results.append(text)
        if results[0] != results[1]:
            sys.exit("sweep.py: two threads give other rows than one")
    print(f"two threads are {walls[0] / walls[1]:.2f}x as fast as one")


if __name__ == "__main__":
    main()

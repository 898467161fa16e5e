#!/usr/bin/env python3
"""How fast plans are searched: Turing-NLG 530B at batch 2,520 on A100, as Calculon's published search, on one thread.

usage: plan_search.py STAGECRAFT SOURCE_DIR [OPTIONS of search]

Prints CPU seconds, which a busy machine lengthens less than wall time, for the search and for the exhaustive one, and checks that
both find the same winner. "Legal" are plans that are placed: those that are out of memory count, those that do not divide do not.
"""
import json
import os
import subprocess
import sys
from pathlib import Path


def measure(program, scenario, options):
    job = subprocess.Popen([program, "search", scenario, "--quiet", "--json", "--jobs", "1", *options],
                           stdout=subprocess.PIPE, text=True)
    answer = json.loads(job.stdout.read())
    _, status, usage = os.wait4(job.pid, 0)
    job.returncode = os.waitstatus_to_exitcode(status)
    if job.returncode not in (0, 1):
        sys.exit(f"plan_search.py: exit code {job.returncode}")
    return answer, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def main():
    program, source, options = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    for name in ("turing-530b-5128xA100", "turing-530b-5040xA100"):
        winners = []
        for how in ([], ["--exhaustive"]):
            answer, cpu, peak = measure(program, source / f"scenarios/search/{name}.yaml", [*how, *options])
            label = "exhaustive" if how else "bounded   "
            print(f"{name}  {label}  {answer['plans']:,} plans, {answer['placed']:,} legal, {answer['fitting']:,} fit, "
                  f"{answer['simulated']:,} simulated  {cpu:6.2f} CPU s  {answer['plans'] / cpu:,.0f} plans/s  "
                  f"{answer['placed'] / cpu:,.0f} legal/s  {answer['simulated'] / cpu:,.0f} simulated/s  {peak:.0f} MB", flush=True)
            winners.append(answer["ranked"][:1])
        if winners[0] != winners[1]:
            sys.exit("plan_search.py: the bounded search has another winner")


if __name__ == "__main__":
    main()

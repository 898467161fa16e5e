"""The files of the tree: those that git knows, or all but build folders where there is no git (a release tarball)."""
import subprocess
from pathlib import Path


def tracked_files(root: Path) -> list[str]:
    """Paths relative to root, with '/', sorted. A tracked file that was deleted is not there."""
    listed: list[str] = []
    if (root / ".git").exists():
        answer = subprocess.run(
            ["git", "-c", f"safe.directory={root.resolve()}", "-C", str(root), "ls-files", "-z"],
            capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            listed = [f for f in answer.stdout.split("\0") if f and (root / f).is_file()]
    if not listed:
        paths = (p.relative_to(root) for p in root.rglob("*") if p.is_file())
        listed = [p.as_posix() for p in paths if p.parts[0] not in ("build", ".git", ".cache") and "__pycache__" not in p.parts]
    return sorted(listed)

"""aider, the command: it mends a fault in a small repository, with each form of edits."""
import tempfile

from tried import KEY, MODEL, URL, broken_repository, command, repository_works, tried

for form in ("whole", "diff"):
    with tried(f"--edit-format {form}"), tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        broken_repository(folder)
        command("aider", "--model", f"openai/{MODEL}", "--edit-format", form, "--yes-always", "--no-check-update", "--analytics-disable",
                "--no-show-model-warnings", "--no-show-release-notes", "--no-detect-urls", "--map-tokens", "1024", "--no-pretty", "--message",
                "area() adds. The area of a rectangle is width * height. Fix it.", "shapes.py",
                cwd=folder, HOME=home, OPENAI_API_BASE=f"{URL}/v1", OPENAI_API_KEY=KEY)
        assert repository_works(folder), "the test still fails: " + open(folder + "/shapes.py").read()

#!/usr/bin/env python3
"""Writes a page into a pull request: one comment, which later runs of the same job replace.

usage: comment.py PAGE PULL_REQUEST

GITHUB_TOKEN may write comments; GITHUB_REPOSITORY, GITHUB_API_URL, GITHUB_WORKFLOW and GITHUB_JOB are as the runner sets them.
MARK, unless empty, tells the comment from those of other jobs of the same name (a matrix). A token that may not (of a fork)
is a warning, not a failure: the page is also in the job's summary.
"""
import json
import os
import sys
import urllib.error
import urllib.request

MOST = 60000  # characters; GitHub takes 65536


def ask(method, path, body=None):
    request = urllib.request.Request(os.environ.get("GITHUB_API_URL", "https://api.github.com") + path, method=method,
                                     data=None if body is None else json.dumps(body).encode())
    request.add_header("Authorization", "Bearer " + os.environ["GITHUB_TOKEN"])
    request.add_header("Accept", "application/vnd.github+json")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def own_comment(issue, mark):
    """The id of the comment with the mark, or None."""
    for page in range(1, 31):
        comments = ask("GET", f"{issue}?per_page=100&page={page}")
        for comment in comments:
            if comment.get("body", "").startswith(mark):
                return comment["id"]
        if len(comments) < 100:
            return None
    return None


def mark_words():
    """Whose comment it is. Jobs of a matrix have one name: their MARK tells them apart."""
    words = ["headrace", os.environ.get("GITHUB_WORKFLOW", ""), os.environ.get("GITHUB_JOB", "")]
    own = " ".join(os.environ.get("MARK", "").replace("-->", "").split())
    return " ".join(words + ([own] if own else []))


def main():
    page, number = sys.argv[1:]
    repository = os.environ["GITHUB_REPOSITORY"]
    issue = f"/repos/{repository}/issues/{int(number)}/comments"
    mark = f"<!-- {mark_words()} -->"
    with open(page, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if len(text) > MOST:
        text = text[:MOST].rsplit("\n", 1)[0] + "\n\nThe page goes on in the job's summary."
    body = {"body": f"{mark}\n{text}"}
    try:
        known = own_comment(issue, mark)
        if known is None:
            ask("POST", issue, body)
        else:
            ask("PATCH", f"/repos/{repository}/issues/comments/{known}", body)
    except urllib.error.HTTPError as error:
        if error.code not in (401, 403, 404):
            raise
        print(f"::warning::the token may not write into pull request {number} (HTTP {error.code}): the page is in the job's summary")


if __name__ == "__main__":
    main()

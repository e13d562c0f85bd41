#!/usr/bin/env bats
# The GitHub action: what its steps do with results of `headrace compare`, and with the answers of GitHub. The comparison itself is
# tests/cli/compare.bats.

ACTION=$BATS_TEST_DIRNAME/../../packaging/github-action

setup() {
  DIR=$(mktemp -d)
  cd "$DIR"
  export RUNNER_TEMP=$DIR GITHUB_OUTPUT=$DIR/output GITHUB_STEP_SUMMARY=$DIR/summary
  export SIDE_A=a.toml SIDE_B=b.toml COMMANDS=false FAIL_ON='rows_per_s<-3%' PAIRS=3 DURATION=1s OPTIONS="--set 'x=1 2' --level 1"
  export HEADRACE=$DIR/headrace
  cat > headrace <<'SH'
#!/bin/sh
# Stands for headrace: writes what it was asked, makes a page, ends with $ENDS.
echo "$1" >> asked
[ "$1" = compare ] || { printf 'verdict\nslower\n'; exit 0; }
for word in "$@"; do echo "[$word]"; done > words
while [ "$1" != -o ]; do shift; done
[ "${ENDS:-0}" -eq 2 ] || echo "# slower" > "$2"
exit "${ENDS:-0}"
SH
  chmod +x headrace
}
teardown() { rm -rf "$DIR"; }

@test "the comparison has the inputs as they are, words and all" {
  bash "$ACTION/compare.sh"
  [ "$(grep -c . words)" -eq 19 ] || { cat words; false; }
  for word in a.toml b.toml '--fail-on' 'rows_per_s<-3%' 'x=1 2' --level; do grep -qxF "[$word]" words || { cat words; false; }; done
  grep -qx 'code=0' output
  grep -qx 'verdict=slower' output
  grep -q '^page=.*comparison.md$' output
  grep -q '# slower' summary
}

@test "commands are compared as commands" {
  COMMANDS=true SIDE_A='python old.py' SIDE_B='python new.py' OPTIONS= bash "$ACTION/compare.sh"
  grep -qxF '[python old.py]' words
  grep -qxF '[--a-cmd]' words
  ! grep -qxF '[--duration]' words
}

@test "a gate that holds fails the job after the page was written, not before" {
  ENDS=3 bash "$ACTION/compare.sh"
  grep -qx 'code=3' output
  run env CODE=3 UNDECIDED=pass bash "$ACTION/judge.sh"
  [ "$status" -eq 3 ]
}

@test "not sure: a warning, or a failure where it is wanted" {
  run env CODE=4 UNDECIDED=pass bash "$ACTION/judge.sh"
  [ "$status" -eq 0 ]
  [[ "$output" == *"::warning::"* ]]
  run env CODE=4 UNDECIDED=fail bash "$ACTION/judge.sh"
  [ "$status" -eq 4 ]
  run env CODE=0 UNDECIDED=pass bash "$ACTION/judge.sh"
  [ "$status" -eq 0 ]
}

@test "without a page the step fails with the command's own code" {
  run env ENDS=2 bash "$ACTION/compare.sh"
  [ "$status" -eq 2 ]
  [[ "$output" == *"::error::"* ]]
}

@test "one comment: made the first time, replaced later, whatever others say" {
  printf '# slower\n' > page.md
  cat > github.py <<'PY'
import http.server, json, sys, threading, subprocess, os
comments, refused = [{"id": n, "body": "other"} for n in range(1, 151)], []
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, code, value):
        self.send_response(code); self.end_headers(); self.wfile.write(json.dumps(value).encode())
    def body(self): return json.loads(self.rfile.read(int(self.headers["Content-Length"])))
    def do_GET(self):
        page = int(self.path.split("page=")[-1])
        self.answer(200, comments[(page - 1) * 100:page * 100])
    def do_POST(self):
        assert self.headers["Authorization"] == "Bearer secret" and self.path == "/repos/o/r/issues/7/comments", self.path
        comments.append({"id": 1000 + len(comments), "body": self.body()["body"]}); self.answer(201, comments[-1])
    def do_PATCH(self):
        id = int(self.path.split("/")[-1])
        assert self.path == f"/repos/o/r/issues/comments/{id}"
        [c for c in comments if c["id"] == id][0]["body"] = self.body()["body"]; self.answer(200, {})
    def log_message(self, *a): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
env = dict(os.environ, GITHUB_API_URL=f"http://127.0.0.1:{server.server_port}", GITHUB_TOKEN="secret", GITHUB_REPOSITORY="o/r",
           GITHUB_WORKFLOW="w", GITHUB_JOB="j")
def comment(): subprocess.run([sys.executable, sys.argv[1], "page.md", "7"], env=env, check=True)
comment()
assert len(comments) == 151 and comments[-1]["body"] == "<!-- headrace w j -->\n# slower\n", comments[-1]
open("page.md", "w").write("# faster\n" + "x" * 100000)
comment()
assert len(comments) == 151 and "# faster" in comments[-1]["body"] and len(comments[-1]["body"]) < 65536
env["MARK"] = "rm2 -->\n x"
comment()
assert len(comments) == 152 and comments[-1]["body"].startswith("<!-- headrace w j rm2 x -->\n"), comments[-1]
comment()
assert len(comments) == 152
Handler.do_GET = lambda self: self.answer(403, {})
out = subprocess.run([sys.executable, sys.argv[1], "page.md", "7"], env=env, check=True, capture_output=True, text=True).stdout
assert out.startswith("::warning::"), out
PY
  python3 github.py "$ACTION/comment.py"
}

@test "action.yml names the files that are there" {
  for file in $(grep -oE '[a-z]+\.(sh|py)' "$ACTION/action.yml" | sort -u); do [ -e "$ACTION/$file" ] || [ "$file" = train.py ]; done
  python3 - "$ACTION/action.yml" <<'PY'
import sys
try:
    import yaml
except ImportError:
    sys.exit(0)
action = yaml.safe_load(open(sys.argv[1]))
assert action["runs"]["using"] == "composite" and all("shell" in step for step in action["runs"]["steps"])
PY
}

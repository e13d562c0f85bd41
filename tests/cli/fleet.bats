#!/usr/bin/env bats
# headrace plan --nodes: the fleet that carries a rate.
bats_require_minimum_version 1.5.0
load helpers

# A recorded run, the same for all, and a file of nodes.
record_small() { "$HEADRACE" run small.toml --duration 1s -q; }
setup_file() { prepare record_small; }
with_nodes() {
  take
  cat > nodes.toml <<'TOML'
[[node]]
name = "small"
price_per_hour = 0.5
cores = 4
speed = 1
max = 1000
[clients]
count = 2
demand = "50000rows/s"
TOML
}

fits_schema() { python3 "$BATS_TEST_DIRNAME/schema.py" "$BATS_TEST_DIRNAME/../../docs/schema/$1.schema.json" "$2"; }

@test "both fleets and shortages fit the published schema, and a broken one does not" {
  with_nodes
  "$HEADRACE" plan --nodes nodes.toml --json > plan.json
  fits_schema fleet plan.json
  run --separate-stderr "$HEADRACE" plan --nodes nodes.toml --target 1e12rows/s --format json
  [ "$status" -eq 4 ]
  printf '%s' "$output" > short.json
  fits_schema fleet short.json
  jq 'del(.counts)' plan.json > broken.json
  run fits_schema fleet broken.json
  [ "$status" -eq 1 ]
  [[ "$output" == *"'counts' is missing"* ]]
}

@test "what is simulated: the target is carried, one node less is a scenario, one seed one answer" {
  with_nodes
  "$HEADRACE" plan --nodes nodes.toml --target 20000rows/s --json > a.json
  jq -e '.simulation.rows_per_second > 19000 and .simulation.rows_per_second < 20500' a.json
  jq -e '.simulation.scenarios[0].key == "one_node" and .simulation.scenarios[0].lost.small == 1' a.json
  "$HEADRACE" plan --nodes nodes.toml --target 20000rows/s --json > b.json
  cmp a.json b.json
  "$HEADRACE" plan --nodes nodes.toml --target 20000rows/s --format md > page.md
  grep -q '^- \*\*VERDICT\*\*' page.md
  run "$HEADRACE" plan --format md
  [ "$status" -eq 2 ]
}

@test "a fleet for a target, as text and as JSON" {
  with_nodes
  "$HEADRACE" plan --nodes nodes.toml --target 20000rows/s > page
  grep -q '^VERDICT  [0-9]* x small carr[iesy]* 20.0 k rows/s, with probability' page
  grep -q '^LIMITS   the nodes (their cores) first' page
  grep -q 'not limited by storage bandwidth' page
  run ! grep -qiw inf page
  "$HEADRACE" plan --nodes nodes.toml --target 20000rows/s --json > plan.json
  [ "$(jq -r '.schema' plan.json)" = headrace.fleet/1 ]
  [ "$(jq -r '.feasible' plan.json)" = true ]
  [ "$(jq '.counts.small * .nodes[0].rows_per_second >= 20000' plan.json)" = true ]
  [ "$(jq '(.counts.small - 1) * .nodes[0].rows_per_second < 20000' plan.json)" = true ]
  [ "$(jq '.watts == null and (.watts_unavailable | length > 0)' plan.json)" = true ]
}

@test "without a target it is what the clients demand" {
  with_nodes
  [ "$("$HEADRACE" plan --nodes nodes.toml --json | jq .target_rows_per_second)" = 100000 ]
  sed -i '/demand/d' nodes.toml
  run "$HEADRACE" plan --nodes nodes.toml
  one_line_error 2 "--target: no rate to plan for; give --target .* or \[clients\] demand"
}

@test "a target in batches is one in rows" {
  with_nodes
  rows=$("$HEADRACE" plan --nodes nodes.toml --target 1000batches/s --json | jq .target_rows_per_second)
  [ "$rows" = 8000 ]
}

@test "no fleet: exit 4, the budget and by how much, in text and JSON" {
  with_nodes
  sed -i 's/max = 1000/max = 1/' nodes.toml
  run --separate-stderr "$HEADRACE" plan --nodes nodes.toml --target 1000000rows/s
  [ "$status" -eq 4 ]
  [[ "$stderr" =~ "nodes.toml: no fleet reaches 1.00 M rows/s: all available nodes do".*"short; lower --target, or raise [[node]] max" ]]
  [[ "$output" =~ "VERDICT  no fleet reaches" ]]
  run --separate-stderr "$HEADRACE" plan --nodes nodes.toml --target 1000000rows/s --json
  [ "$status" -eq 4 ]
  [ "$(jq -r '.feasible, .shortage.resource' <<< "$output" | paste -sd' ')" = "false nodes" ]
  [ "$(jq '.shortage.short_ratio > 0.5 and .counts.small == 1' <<< "$output")" = true ]
}

@test "mistakes in the nodes file and in the options are one line" {
  with_nodes
  sed -i 's/cores = 4/cores = "4"/' nodes.toml
  run "$HEADRACE" plan --nodes nodes.toml --target 5rows/s
  one_line_error 5 "nodes.toml:4:9: 'cores' is not a number; give a number from"
  run "$HEADRACE" plan --nodes absent.toml --target 5rows/s
  one_line_error 5 "absent.toml"
  run "$HEADRACE" plan --nodes nodes.toml --cores 4
  [ "$status" -eq 2 ]
}

@test "the program in words and as an LP file that GLPK solves alike" {
  with_nodes
  "$HEADRACE" plan --nodes nodes.toml --target 20000rows/s --explain --lp fleet.lp > page
  grep -q 'X >= 20.0 k rows/s  (target)' page
  grep -qi '^minimize' fleet.lp
  run "$HEADRACE" plan --nodes nodes.toml --target 20000rows/s --lp fleet.lp
  one_line_error 2 "fleet.lp"
  command -v glpsol > /dev/null || skip "no glpsol here"
  glpsol --lp fleet.lp -o solution > log
  count=$("$HEADRACE" plan --nodes nodes.toml --target 20000rows/s --json | jq .counts.small)
  grep -q "N_small *\* *$count " solution
}

@test "more nodes than are ever planned are a shortage: exit 4, and it is said" {
  with_nodes
  sed -i 's/^max = 1000$//; s/^cores = 4$/cores = 18/' nodes.toml
  run --separate-stderr "$HEADRACE" plan --nodes nodes.toml --target 1e12rows/s
  [ "$status" -eq 4 ]
  [[ "$stderr" =~ "no fleet reaches" ]]
  [[ "$output" =~ "BUY      1000000 x small" ]]
  [[ "$output" =~ "RUN      unavailable (it has 1000000 nodes" ]]
  "$HEADRACE" plan --nodes nodes.toml --target 0.001rows/s > page
  grep -q '^BUY      1 x small' page
  run grep -q ' 0 rows/s at most' page
  [ "$status" -eq 1 ]
}

@test "a nodes file or pipeline that nests without end is refused in one line" {
  with_nodes
  python3 -c 'print("a." * 200000 + "b = 1")' > deep.toml
  run "$HEADRACE" plan --nodes deep.toml --target 5rows/s
  one_line_error 5 "deep.toml:1: a key of more than 33 parts"
  run "$HEADRACE" run deep.toml
  one_line_error 2 "deep.toml:1: a key of more than 33 parts"
  run "$HEADRACE" generate deep.toml -o made
  one_line_error 5 "deep.toml:1: a key of more than 33 parts"
}

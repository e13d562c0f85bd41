# Those of finished runs, where there is an executable.
table
[ ! -d "$work/table" ] || for epochs in 1 3; do
  "$headrace" run "$work/table/pipeline.toml" --no-record -q --epochs $epochs --checkpoint "$PWD/$epochs" 2> /dev/null || true
done
# Lists of splits: of 10, 0 and 20 rows; one that overlaps the one before; one far outside.
printf '\200\012\200\000\200\024' > splits
printf '\200\012\177\012' > overlap
printf '\000\012\200\012' > outside

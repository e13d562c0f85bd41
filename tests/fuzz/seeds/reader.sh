# Small example files, where they are, and tables of our own writer: plain, encrypted, with another layout.
for folder in "${HEADRACE_DWRF_FILES:-$root/../shared/dwrf/files}" "$root/tests/fuzz/corpus"; do
  [ ! -d "$folder" ] || find "$folder" -type f ! -name '*.json' -size -64k -exec cp {} . \;
done
table
if [ -d "$work/table" ]; then
  cp "$work"/table/*.dwrf .
  if HEADRACE_FUZZ_KEYS="fuzz 000102030405060708090a0b0c0d0e0f" "$headrace" generate rm3 -o "$work/secret" --rows 256 \
    --features 0.002 --seed 1 --keys env:HEADRACE_FUZZ_KEYS --encrypt a=sparse,dense:fuzz:aes128-ctr \
    --encrypt b=label:fuzz:aes128-gcm 2> /dev/null; then
    cp "$work"/secret/part-00000.dwrf secret.dwrf
  fi
  if "$headrace" rewrite "$work/table" -o "$work/maps" --layout map 2> /dev/null; then
    cp "$work"/maps/part-00000.dwrf maps.dwrf
  fi
fi

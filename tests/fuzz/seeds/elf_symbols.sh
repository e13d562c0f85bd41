# A small program, and the text of a sampler.
printf 'int f(int x) { return x + 1; }\nint main(int c, char** v) { (void)v; return f(c); }\n' > "$work/p.c"
if cc -O1 -o program "$work/p.c"; then printf '\000' >> program; fi
printf 'process 7:"python t.py";process 9:"python t.py";thread (9): Main;main (t.py:4) 12\n\006' > py_spy

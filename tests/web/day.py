"""Makes a day of a recorded run: its windows again and again, as long as the rollup leaves them (collectors/store/rollup.cc), each operator
as many. Rates stay those of the recording, totals are those of the new windows.

make_day(connection): run 1 of that database, the only one, lasts a day, has OPERATORS operators and about a million rows of their course. Its
windows are those of at most 100 operators; with sooner=10 they are those of 1000. operators=1, active=1: those of the recording, at work in
every window that they were.
"""

SECOND_NS = 10**9
DAY_NS = 24 * 3600 * SECOND_NS
# Of the end of the day: how long, and the length of its windows. Before it the next line holds.
WINDOWS = ((600 * SECOND_NS, SECOND_NS // 4), (3000 * SECOND_NS, 2 * SECOND_NS), (5 * 3600 * SECOND_NS, 16 * SECOND_NS),
           (DAY_NS - 6 * 3600 * SECOND_NS, 64 * SECOND_NS))
MEASURED = ((600 * SECOND_NS, SECOND_NS // 4), (3000 * SECOND_NS, 16 * SECOND_NS), (DAY_NS - 3600 * SECOND_NS, 128 * SECOND_NS))
OPERATORS = 1000
ACTIVE = 5  # operators that stand for a recorded one in a window, of all that do

# The totals of an entity and its course.
COURSES = (("stages", "stage_intervals", "stage_id"), ("operators", "operator_intervals", "operator_id"),
           ("queues", "queue_intervals", "queue_id"), ("resources", "resource_intervals", "resource_id"))
KEYS = {"run_id", "start_ns", "stage_id", "operator_id", "queue_id", "resource_id", "measurement_id", "step_ns", "resolution_ns"}


def columns(connection, table):
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def whole(expression):
    return f"CAST(ROUND({expression}) AS INTEGER)"


def make_windows(connection, name, lengths, day_ns):
    """The temporary table `name`: start and length of each window of the day, in order, numbered from 0."""
    connection.execute(f"CREATE TEMP TABLE {name} (number INTEGER PRIMARY KEY, start_ns INTEGER, duration_ns INTEGER)")
    starts, end = [], day_ns
    for length, window in lengths:
        begin = max(0, end - length)
        starts += [(start, window) for start in range(begin, end, window)]
        end = begin
    connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", [(i, *each) for i, each in enumerate(sorted(starts))])


def make_templates(connection, recorded_ns):
    """Which recorded window each one repeats, and how many times as long it is. The first and the last ones are not like the others."""
    connection.execute("CREATE TEMP TABLE templates AS SELECT start_ns, duration_ns, row_number() OVER (ORDER BY start_ns) - 1 AS number "
                       "FROM intervals WHERE run_id = 1 AND start_ns >= ?1 AND start_ns < ?1 * 7", (recorded_ns // 8,))
    many = connection.execute("SELECT COUNT(*) FROM templates").fetchone()[0]
    connection.execute("CREATE TEMP TABLE copies AS SELECT w.number, w.start_ns, w.duration_ns, t.start_ns AS from_ns, "
                       f"w.duration_ns * 1.0 / t.duration_ns AS times FROM windows AS w JOIN templates AS t ON t.number = w.number % {many}")
    connection.execute("CREATE INDEX temp.copies_from ON copies (from_ns)")


def replace_rows(connection, table, select):
    connection.execute(f"CREATE TEMP TABLE made AS {select}")
    connection.execute(f"DELETE FROM {table} WHERE run_id = 1")
    connection.execute(f"INSERT INTO {table} ({', '.join(columns(connection, table))}) SELECT * FROM made")
    connection.execute("DROP TABLE temp.made")


def repeat(connection, table):
    """A course without operators: its counts and times grow with the windows, so that its rates stay."""
    values = {"run_id": "1", "start_ns": "c.start_ns", "duration_ns": "c.duration_ns",
              "resolution_ns": f"CASE WHEN c.duration_ns > {SECOND_NS} THEN c.duration_ns ELSE 0 END"}
    selected = [values.get(name) or (f"r.{name}" if name in KEYS else whole(f"r.{name} * c.times")) for name in columns(connection, table)]
    replace_rows(connection, table, f"SELECT {', '.join(selected)} FROM copies AS c JOIN {table} AS r ON r.run_id = 1 AND r.start_ns = c.from_ns")


def multiply_operators(connection, operators, active_operators):
    """Each operator becomes as many others, which take turns at its work. The trainer stays one."""
    work = connection.execute("SELECT COUNT(*) FROM operators WHERE run_id = 1 AND kind <> 'consumer'").fetchone()[0]
    each = -(-operators // work)
    connection.execute("CREATE TEMP TABLE turns (turn INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO turns VALUES (?)", [(i,) for i in range(each)])
    counted = [name for name in columns(connection, "operator_intervals") if name not in KEYS]
    shares = ", ".join(whole(f"r.{name} * c.times / CASE WHEN o.kind = 'consumer' THEN 1 ELSE {active_operators} END") for name in counted)
    active = f"((t.turn - c.number * {active_operators}) % {each} + {each}) % {each} < {active_operators}"
    replace_rows(connection, "operator_intervals",
                 f"SELECT 1, c.start_ns, r.operator_id * {each} + t.turn, {shares} FROM copies AS c "
                 "JOIN operator_intervals AS r ON r.run_id = 1 AND r.start_ns = c.from_ns JOIN operators AS o USING (run_id, operator_id) "
                 f"JOIN turns AS t ON CASE WHEN o.kind = 'consumer' THEN t.turn = 0 ELSE {active} END")
    changed = {"operator_id": f"r.operator_id * {each} + t.turn", "operator": "r.operator || CASE WHEN t.turn = 0 THEN '' ELSE '.' || t.turn END",
               "position_index": f"r.position_index * {each} + t.turn"}
    replace_rows(connection, "operators",
                 f"SELECT {', '.join(changed.get(name, 'r.' + name) for name in columns(connection, 'operators'))} FROM operators AS r "
                 "JOIN turns AS t ON t.turn = 0 OR r.kind <> 'consumer' WHERE r.run_id = 1")
    for table in ("measurements", "stacks"):
        connection.execute(f"UPDATE {table} SET operator_id = operator_id * {each} WHERE run_id = 1")


def measure(connection, longer):
    """Measurements in their own windows, each one in every window; counters grow with the time."""
    connection.execute("CREATE TEMP TABLE seen AS SELECT measurement_id, value, duration_ns, row_number() OVER own - 1 AS number, "
                       "COUNT(*) OVER (PARTITION BY measurement_id) AS many FROM measurement_intervals WHERE run_id = 1 AND duration_ns > 1e8 "
                       "WINDOW own AS (PARTITION BY measurement_id ORDER BY start_ns)")
    connection.execute("CREATE INDEX temp.seen_number ON seen (measurement_id, number)")
    value = "CASE WHEN k.kind = 'counter' THEN s.value * w.duration_ns / s.duration_ns ELSE s.value END"
    values = {"run_id": "1", "start_ns": "w.start_ns", "measurement_id": "m.measurement_id", "duration_ns": "w.duration_ns", "value": value}
    replace_rows(connection, "measurement_intervals",
                 f"SELECT {', '.join(values[name] for name in columns(connection, 'measurement_intervals'))} FROM measured AS w "
                 "JOIN (SELECT DISTINCT measurement_id, many FROM seen) AS m JOIN seen AS s ON s.measurement_id = m.measurement_id AND "
                 "s.number = w.number % m.many JOIN measurements AS d ON d.run_id = 1 AND d.measurement_id = m.measurement_id "
                 "JOIN metrics AS k ON k.run_id = 1 AND k.metric = d.metric")
    connection.execute("UPDATE measurements SET last_value = last_value * ?1 WHERE run_id = 1 AND metric IN "
                       "(SELECT metric FROM metrics WHERE run_id = 1 AND kind = 'counter')", (longer,))
    connection.execute("UPDATE stacks SET time_ns = time_ns * ?1, samples_count = samples_count * ?1 WHERE run_id = 1", (round(longer),))


def add_up(connection):
    for table, course, key in COURSES:
        shared = [name for name in columns(connection, course) if name not in KEYS and name in columns(connection, table)]
        sums = ", ".join(f"SUM({name}) AS {name}" for name in shared)
        connection.execute(f"CREATE TEMP TABLE sums AS SELECT {key} AS id, {sums} FROM {course} WHERE run_id = 1 GROUP BY 1")
        connection.execute("CREATE INDEX temp.sums_id ON sums (id)")
        connection.execute(f"UPDATE {table} SET ({', '.join(shared)}) = (SELECT {', '.join(shared)} FROM sums WHERE id = {key}) "
                           f"WHERE run_id = 1 AND {key} IN (SELECT id FROM sums)")
        connection.execute("DROP TABLE temp.sums")
    connection.execute("UPDATE steps SET (steps_count, rows_count, wait_ns, compute_ns, first_ns, last_ns) = (SELECT SUM(steps_count), "
                       "SUM(step_rows_count), SUM(step_wait_ns), SUM(step_compute_ns), 0, MAX(start_ns + duration_ns) FROM intervals "
                       "WHERE run_id = 1) WHERE run_id = 1")
    connection.execute("DELETE FROM step_histogram WHERE run_id = 1")
    connection.execute("INSERT INTO step_histogram SELECT 1, step_ns, SUM(steps_count) FROM step_time_intervals WHERE run_id = 1 GROUP BY step_ns")


def make_day(connection, day_ns=DAY_NS, operators=OPERATORS, active=ACTIVE, sooner=1):
    recorded_ns = connection.execute("SELECT duration_ns FROM runs WHERE run_id = 1").fetchone()[0]
    make_windows(connection, "windows", [(age // sooner, window) for age, window in WINDOWS[:-1]] + [WINDOWS[-1]], day_ns)
    make_windows(connection, "measured", MEASURED, day_ns)
    make_templates(connection, recorded_ns)
    multiply_operators(connection, operators, active)
    for table in ("stage_intervals", "queue_intervals", "resource_intervals", "step_time_intervals", "intervals"):
        repeat(connection, table)
    measure(connection, day_ns / recorded_ns)
    add_up(connection)
    connection.execute("UPDATE runs SET duration_ns = ?, name = 'a day' WHERE run_id = 1", (day_ns,))
    connection.execute("UPDATE processes SET ended_ns = ?1 WHERE run_id = 1 AND ended_ns IS NOT NULL", (day_ns,))
    connection.commit()
    connection.execute("VACUUM")

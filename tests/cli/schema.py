#!/usr/bin/env python3
"""Whether a JSON document fits a schema of docs/schema, by the keywords that those use; an unknown keyword is an error, so that no
part of a schema goes unread.

usage: schema.py SCHEMA DOCUMENT
"""
import json
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
NOTES = {"$schema", "$id", "$defs", "title", "description"}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def faults(value, schema, root, at):
    for keyword, wanted in schema.items():
        if keyword == "$ref":
            yield from faults(value, root["$defs"][wanted.rsplit("/", 1)[1]], root, at)
        elif keyword == "type":
            if not any(is_type(value, name) for name in ([wanted] if isinstance(wanted, str) else wanted)):
                yield f"{at}: is no {wanted}: {value!r}"
        elif keyword == "const" and value != wanted or keyword == "enum" and value not in wanted:
            yield f"{at}: is {value!r}, not {wanted!r}"
        elif keyword in ("minimum", "maximum") and is_type(value, "number"):
            if value < wanted if keyword == "minimum" else value > wanted:
                yield f"{at}: {value} is beyond its {keyword} {wanted}"
        elif keyword == "required" and isinstance(value, dict):
            yield from (f"{at}: '{name}' is missing" for name in wanted if name not in value)
        elif keyword == "properties" and isinstance(value, dict):
            for name, of in wanted.items():
                if name in value:
                    yield from faults(value[name], of, root, f"{at}.{name}")
        elif keyword == "additionalProperties" and isinstance(value, dict):
            for name in value:
                if name in schema.get("properties", {}) or wanted is True:
                    continue
                if wanted is False:
                    yield f"{at}: '{name}' is not in the schema"
                else:
                    yield from faults(value[name], wanted, root, f"{at}.{name}")
        elif keyword == "items" and isinstance(value, list):
            for i, item in enumerate(value):
                yield from faults(item, wanted, root, f"{at}[{i}]")
        elif keyword not in NOTES | {"const", "enum", "minimum", "maximum", "required", "properties", "additionalProperties", "items"}:
            raise SystemExit(f"schema.py: keyword '{keyword}' is not known")


def main():
    schema, document = (json.load(open(path)) for path in sys.argv[1:3])
    found = list(faults(document, schema, schema, "$"))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

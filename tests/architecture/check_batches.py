#!/usr/bin/env python3
"""Sanitizer builds compile the sources of a library in batches (cmake/StagecraftFastBuild.cmake), where the helpers of one source
meet those of another: finds what two sources of a library both define, whichever batches they are in today.

Overloads may meet, so functions count where their parameter types read alike; so may aliases that say the same, and `using
namespace`, which has no name of its own. Sources that are generated, or chosen by $<IF:…>, are not read. Only the sanitizer builds
tell where a function is passed by its name while another source overloads it.

usage: check_batches.py ROOT

Prints each name with its two places. Exit 0 when there is none, 1 otherwise.
"""
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from tracked import tracked_files

LIBRARY = re.compile(r"\bstagecraft_library\(\s*NAME\s+(?P<name>\w+)\s+SOURCES\s(?P<sources>[^()]*?)(?:\s(?:HEADERS|DEPS|LINK|PRIVATE_LINK)\s|\))")
UNBATCHED = re.compile(r"\bset_target_properties\(stagecraft_(\w+) PROPERTIES UNITY_BUILD OFF\)")
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<end>\w*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|'
                     r'^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
TOKEN = re.compile(r'operator\b\s*(?:\(\s*\)|""\s*\w+|[^\s\w(]+)|""|::|\w+|\S')
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
TYPES = {"struct", "class", "union", "enum"}
NO_NAMES = {"const", "int", "long", "short", "char", "bool", "float", "double", "unsigned", "auto", "requires", "decltype", "alignas"}


class Token(NamedTuple):
    text: str  # of a group in brackets all of it
    line: int

    def is_word(self) -> bool:
        return self.text.isidentifier() and self.text not in NO_NAMES


class Definition(NamedTuple):
    name: str     # in its named namespaces; an unnamed one keeps nothing apart
    kind: str     # function, type, variable or alias
    meaning: str  # the parameter types of a function, the text of an alias
    line: int


def tokens_of(text: str) -> Iterator[Token]:
    code = NO_CODE.sub(lambda m: ('""' if m[0][0] in 'R"' else "") + "\n" * m[0].count("\n"), text)
    line, before = 1, 0
    for match in TOKEN.finditer(code):
        line += code.count("\n", before, match.start())
        before = match.start()
        yield Token(match[0], line)


def group(opening: Token, tokens: Iterator[Token]) -> Token:
    """All to the bracket that closes this one, as one token."""
    words = [opening.text]
    for token in tokens:
        inner = token.text in ("(", "[", "{") or token.text == opening.text
        words.append(group(token, tokens).text if inner else token.text)
        if token.text == CLOSING[opening.text]:
            break
    return Token(" ".join(words), opening.line)


def statements(tokens: Iterator[Token], spaces: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Token]]]:
    """The declarations in namespaces, each with the namespaces around it and with its groups in brackets as one token."""
    found: list[Token] = []
    for token in tokens:
        words = [t.text for t in found]
        if token.text == "}":
            return  # the end of the namespace
        if token.text == "{" and "namespace" in words[:2]:
            yield from statements(tokens, spaces + tuple(w for w in words if w not in ("inline", "namespace", "::")))
            found = []
        elif token.text == ";":
            yield spaces, found
            found = []
        elif token.text in ("(", "[", "{") or (token.text == "<" and "=" not in words):
            found.append(group(token, tokens))
            initialises = "=" in words or (":" in words and words[-1][0] not in "({")  # a variable, or a member in a constructor
            if token.text == "{" and any(w[0] == "(" for w in words) and not initialises and not TYPES & set(words):
                yield spaces, found  # the body of a function: no semicolon after it
                found = []
        else:
            found.append(token)


def parts_of(tokens: list[Token]) -> list[list[Token]]:
    """What commas separate."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def inside(brackets: Token) -> list[list[Token]]:
    tokens = tokens_of(brackets.text[1:-1])
    return parts_of([group(token, tokens) if token.text in CLOSING else token for token in tokens])


def joined(tokens: list[Token]) -> str:
    return re.sub(r"(?<=[<,] )typename\b", "class", " ".join(t.text for t in tokens))


def type_of(parameter: list[Token]) -> str:
    """A parameter without its name and default."""
    words = [t.text for t in parameter]
    end = words.index("=") if "=" in words else len(words)
    types = [w for w in words[:end] if w != "const"]
    if len(types) > 1 and parameter[end - 1].is_word() and types[-2] != "::":
        end -= 1
    return joined(parameter[:end])


def named(head: str, found: list[Token]) -> Iterator[tuple[Token, str, str]]:
    """Name, kind and meaning of what a declaration without its template head defines."""
    words = [t.text for t in found]
    if words[0] in ("using", "namespace"):
        if words[1] not in ("namespace", "enum"):
            yield found[words.index("=") - 1 if "=" in words else -1], "alias", head + joined(found)
        return
    value = next((i for i, w in enumerate(words) if w == "=" or w[0] in "{["), len(words))
    call = next((i for i, w in enumerate(words[:value]) if w[0] == "(" and (found[i - 1].is_word() or "operator" in words[i - 1])), 0)
    if words[0] in TYPES:
        name = next((i for i, w in enumerate(words[:value]) if w in (":", "final")), value) - 1
        if words[-1][0] == "{" and found[name].is_word() and words[name - 1] != "::":
            yield found[name], "type", ""
        if words[-1][0] == "{" and words[0] == "enum" and words[1] not in ("class", "struct"):
            yield from ((Token(part[0].text, found[-1].line), "variable", "") for part in inside(found[-1]) if part)
    elif call and words[call - 2] != "::" and words[-1][0] == "{":
        yield found[call - 1], "function", head + ", ".join(map(type_of, inside(found[call])))
    elif call and words[call - 2] != "::" and re.match("k[A-Z]", words[call - 1]):
        yield found[call - 1], "variable", ""
    elif not call and words[0] != "extern":
        first, *others = parts_of(found)
        value = min(value, len(first))
        if value > 1 and first[value - 1].is_word() and words[value - 2] != "::":
            yield first[value - 1], "variable", ""
            yield from ((part[0], "variable", "") for part in others if part[0].is_word() and (part[1:] or part)[0].text[0] in "={[")


def definitions_in(text: str) -> list[Definition]:
    found = []
    for spaces, tokens in statements(tokens_of(text)):
        tokens = [t for t in tokens if not t.text.startswith("[ [")]  # attributes
        head = 2 if tokens and tokens[0].text == "template" else 0
        if len(tokens) > head + 1:
            for name, kind, meaning in named(joined(tokens[:head]), tokens[head:]):
                found.append(Definition("::".join((*spaces, name.text)), kind, meaning, name.line))
    return found


def clash(a: Definition, b: Definition) -> bool:
    if a.kind != b.kind:
        return True
    return {"function": a.meaning == b.meaning, "alias": a.meaning != b.meaning}.get(a.kind, True)


def clashes_in(files: dict[str, str]) -> list[str]:
    """`file:line and file:line: name; …` for each pair of sources of one library that cannot share a batch."""
    places = defaultdict(list)
    for file, text in files.items():
        for definition in definitions_in(text):
            places[definition.name].append((file, definition))
    return [f"{f}:{a.line} and {g}:{b.line} both define {name}: give one of them another name"
            for name, found in sorted(places.items()) for (f, a), (g, b) in combinations(found, 2) if f != g and clash(a, b)]


def libraries_in(cmake: str) -> dict[str, list[str]]:
    """The sources of the libraries that are built in batches, as a CMakeLists.txt names them."""
    cmake = re.sub(r"#[^\n]*", "", cmake)
    unbatched = UNBATCHED.findall(cmake)
    found = {m["name"]: [s for s in m["sources"].split() if not s.startswith("$")] for m in LIBRARY.finditer(cmake)}
    if len(found) != cmake.count("stagecraft_library("):
        raise ValueError("a stagecraft_library() that does not begin with NAME and SOURCES")
    return {name: sources for name, sources in found.items() if name not in unbatched}


def main() -> int:
    root = Path(sys.argv[1])
    problems, sources = [], 0
    for cmake in (f for f in tracked_files(root) if f.endswith("CMakeLists.txt")):
        folder = Path(cmake).parent
        for names in libraries_in((root / cmake).read_text(encoding="utf-8")).values():
            files = {(folder / name).as_posix(): (root / folder / name).read_text(encoding="utf-8") for name in names}
            problems += clashes_in(files)
            sources += len(files)
    print("\n".join(problems) if problems else f"any of {sources} sources may share a batch with others of its library")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

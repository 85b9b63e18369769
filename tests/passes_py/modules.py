"""Valid modules that are unlike those of the frontend; some have no meaning, and passes must say so."""

from __future__ import annotations

V, M = "tensor<4xf32>", "tensor<4x4xf32>"

F = f"({V}) -> {V}"
ID = f"{{ return %x : {V} }}"
EXP = f'{{ %0 = "smelt.exp"(%x) : {F}\n return %0 : {V} }}'
DOUBLE = f"({V}, {V}) -> ({V}, {V})"


def applied(callee: str, kind: str, result: str = "%0#1") -> str:
    """The body of a function of %x that applies a transformation of another."""
    attrs = "wrt = array<i64: 0>" + (", seeds = array<i64: 0>" if kind == "vjp" else "")
    return f"""{{
  %f = func.constant @{callee} : {F}
  %d = "smelt.{kind}"(%f) {{{attrs}}} : ({F}) -> ({DOUBLE})
  %0:2 = func.call_indirect %d(%x, %x) : {DOUBLE}
  return {result} : {V}
}}"""


def loop(body: str) -> str:
    """A function that runs @body, which is a function (carry, carry) → (carry, carry), three times."""
    return f"""
func.func @main(%x: {V}, %u: {V}) -> ({V}, {V}) {{
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c1 = arith.constant 1 : index
  %1:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %b = %u) -> ({V}, {V}) {{
    %3:2 = func.call @body(%a, %b) : {DOUBLE}
    scf.yield %3#0, %3#1 : {V}, {V}
  }} {{smelt.carries = 2 : i64, smelt.constants = 0 : i64}}
  return %1#0, %1#0 : {V}, {V}
}}
{body}"""


def main(body: str) -> str:
    return f"func.func @main(%x: {V}) -> {V} {body}\n"


def ruled(kind: str, attributes: str, rules: str = "") -> str:
    """@g with rules, transformed."""
    return main(applied("g", kind)) + f"func.func private @g(%x: {V}) -> {V} attributes {{{attributes}}} {EXP}\n{rules}"


BODY = f"(%x: {V}, %y: {V}) -> ({V}, {V})"
RULE = "smelt.custom_vjp = @r, smelt.custom_jvp = @r"

MODULES = {
    "empty": "",
    "no main": f"func.func @f(%x: {V}) -> {V} {ID}",
    "private functions only": f"func.func private @f(%x: {V}) -> {V} {EXP}",
    "nothing": "func.func @main() { return }",
    "a call of a declaration": f"func.func private @f({V}) -> {V}\n"
    + main(f"{{ %0 = func.call @f(%x) : {F}\n return %0 : {V} }}"),
    "main is a declaration": f"func.func private @main({V}) -> {V}",
    "equal results and an argument": f"""
func.func @main(%x: {V}) -> ({V}, {V}, {V}) {{
  %0 = "smelt.exp"(%x) : {F}
  return %0, %0, %x : {V}, {V}, {V}
}}""",
    "a function as an argument": f"""
func.func @main(%g: {F}, %x: {V}) -> {V} {{
  %0 = func.call_indirect %g(%x) : {F}
  return %0 : {V}
}}""",
    "a function as a result": f"""
func.func @main() -> ({F}) {{
  %f = func.constant @f : {F}
  return %f : {F}
}}
func.func private @f(%x: {V}) -> {V} {ID}""",
    "a function handed on": f"""
func.func @main(%x: {V}) -> {V} {{
  %f = func.constant @f : {F}
  %0 = func.call @g(%f, %x) : ({F}, {V}) -> {V}
  return %0 : {V}
}}
func.func private @g(%g: {F}, %x: {V}) -> {V} {{
  %0 = func.call_indirect %g(%x) : {F}
  return %0 : {V}
}}
func.func private @f(%x: {V}) -> {V} {ID}""",
    "a function that a call returns": f"""
func.func private @h() -> ({F}) {{
  %f = func.constant @f : {F}
  return %f : {F}
}}
func.func private @f(%x: {V}) -> {V} {ID}
func.func @main(%x: {V}) -> {V} {{
  %f = func.call @h() : () -> ({F})
  %0 = func.call_indirect %f(%x) : {F}
  return %0 : {V}
}}""",
    "a kernel that is transformed": f"""
func.func @main(%x: {M}) -> {M} {{
  %f = func.constant @k : {F}
  %d = "smelt.batch"(%f) {{size = 4 : i64, in_axes = array<i64: 0>, out_axes = array<i64: 1>}} : ({F}) -> (({M}) -> {M})
  %0 = func.call_indirect %d(%x) : ({M}) -> {M}
  return %0 : {M}
}}
func.func private @k(%x: {V}) -> {V} attributes {{smelt.fusion = "map"}} {EXP}""",
    "a loop over a public function": loop(
        f'func.func @body{BODY} {{ %0 = "smelt.exp"(%x) : {F}\n return %0, %y : {V}, {V} }}'
    ),
    "a loop that swaps": loop(f"func.func private @body{BODY} {{ return %y, %x : {V}, {V} }}"),
    "a loop over a declaration": loop(f"func.func private @body({V}, {V}) -> ({V}, {V})"),
    "a loop that runs itself": loop("").replace("@body", "@main"),
    "a loop whose body calls its function": loop(
        f"func.func private @body{BODY} {{ %0:2 = func.call @main(%x, %y) : {DOUBLE}\n return %0#0, %0#1 : {V}, {V} }}"
    ),
    "a loop over a body with rules": loop(
        f"func.func private @body{BODY} attributes {{smelt.checkpoint}} {{ return %y, %x : {V}, {V} }}"
    ),
    "blocks": main(f"{{ cf.br ^a(%x : {V})\n^a(%y: {V}):\n return %y : {V} }}"),
    "ops of others": "func.func @main(%x: i32) -> i32 { %0 = arith.addi %x, %x : i32\n return %0 : i32 }",
    "types of others": "func.func @main(%x: memref<4xf32>) { return }",
    "a dynamic shape": "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }",
    "a module in a module": f"module {{ {main(ID)} }}\nfunc.func @main() {{ return }}",
    "an op beside functions": "memref.global @a : memref<4xf32>\nfunc.func @main() { return }",
}
for _kind in ("vjp", "jvp"):
    _g = f"func.func private @g(%x: {V}) -> {V}"
    MODULES |= {
        f"{_kind} of itself": main(applied("main", _kind)),
        f"{_kind} of a function that calls it": main(applied("g", _kind))
        + f"{_g} {{ %0 = func.call @main(%x) : {F}\n return %0 : {V} }}",
        f"{_kind} of itself in an unused function": main(ID) + f"{_g} {applied('g', _kind)}",
        f"{_kind} of a declaration": main(applied("g", _kind)) + f"func.func private @g({V}) -> {V}",
        f"{_kind} that nobody uses": main(applied("g", _kind, "%x")) + f"{_g} {EXP}",
        f"{_kind} whose primal result is used": main(applied("g", _kind, "%0#0")) + f"{_g} {EXP}",
        f"{_kind} with a rule that is missing": ruled(_kind, RULE),
        f"{_kind} with a rule that is a declaration": ruled(_kind, RULE, f"func.func private @r({V}, {V}) -> {V}"),
        f"{_kind} with a rule without arguments": ruled(_kind, RULE, "func.func private @r() { return }"),
        f"{_kind} with a rule without results": ruled(
            _kind, RULE, f"func.func private @r(%a: {V}, %b: {V}) {{ return }}"
        ),
        f"{_kind} with a rule that is no name": ruled(_kind, 'smelt.custom_vjp = "r", smelt.custom_jvp = 3 : i64'),
        f"{_kind} with a rule that transforms its function": ruled(
            _kind, "smelt.custom_vjp = @r3, smelt.custom_jvp = @r",
            f"func.func private @r(%x: {V}, %y: {V}) -> {V} {applied('g', _kind)}\n"
            f"func.func private @r3(%x: {V}, %z: {V}, %y: {V}) -> {V} {applied('g', _kind)}",
        ),
    }  # fmt: skip

// Precedence of operators. A higher power binds more tightly.
//
// From loose to tight, in the order of this dialect rather than that of the standard: OR, AND, NOT, equality and
// matching, comparison, containment of addresses, IN and BETWEEN, |, ^, &, || and operators of JSON and lists, shifts,
// + -, * / %, signs, AT TIME ZONE, ::, subscripts and COLLATE. Operators of equal power are left-associative.

export const notPower = 30
export const equalityPower = 40
export const containmentPower = 60
export const otherPower = 85
export const signPower = 130
export const zonePower = 135

/**
 * PostgreSQL's operators on JSON and lists, by the functions that implement them. `swapped`: the right operand comes
 * first.
 */
export const operatorCalls: ReadonlyMap<string, { readonly name: string; readonly swapped?: true }> = new Map([
  ['->', { name: 'json_get' }],
  ['->>', { name: 'json_get_text' }],
  ['#>', { name: 'json_get_path' }],
  ['#>>', { name: 'json_get_path_text' }],
  ['#-', { name: 'jsonb_delete_path' }],
  ['?', { name: 'json_has' }],
  ['?|', { name: 'json_has_any' }],
  ['?&', { name: 'json_has_all' }],
  ['@>', { name: 'contains' }],
  ['<@', { name: 'contains', swapped: true }],
  ['&&', { name: 'lists_overlap' }],
])

/** Powers of infix operators. */
export const powers: ReadonlyMap<string, number> = new Map([
  ['or', 10],
  ['and', 20],
  ['=', equalityPower],
  ['<>', equalityPower],
  ['~', equalityPower],
  ['!~', equalityPower],
  ['~*', equalityPower],
  ['!~*', equalityPower],
  ['~~', equalityPower],
  ['!~~', equalityPower],
  ['~~*', equalityPower],
  ['!~~*', equalityPower],
  ['like', equalityPower],
  ['ilike', equalityPower],
  ['is', equalityPower],
  ['operator', equalityPower],
  ['<', 50],
  ['<=', 50],
  ['>', 50],
  ['>=', 50],
  ['<<=', 55],
  ['>>=', 55],
  ['in', containmentPower],
  ['between', containmentPower],
  ['within', containmentPower],
  ['|', 70],
  ['^', 75],
  ['&', 80],
  ['||', otherPower],
  ...[...operatorCalls.keys()].map((word) => [word, otherPower] as const),
  ['<<', 90],
  ['>>', 90],
  ['+', 100],
  ['-', 100],
  ['*', 110],
  ['/', 110],
  ['%', 110],
  ['::', 140],
  ['[', 150],
  ['collate', 150],
])

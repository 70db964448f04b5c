// Rewrites a long chain of `x = 1 or x = 2 or ..`, as tools generate it, to `x in (1, 2, ..)`: one set look-up per row
// instead of one comparison per value.

import { dataType, sameType } from '../../types/column-types.js'
import type { Expression } from '../plan/plan.js'

/** Shorter chains are faster as they are: kernels compare several rows at once. */
const alternativesMin = 64

interface Alternatives {
  readonly subject: Expression
  readonly members: Expression[]
}

/** The terms of an OR chain, with comparisons of one column with constants replaced by IN lists. */
export function gatherAlternatives(terms: readonly Expression[]): readonly Expression[] {
  if (terms.length < alternativesMin) return terms
  const lists = new Map<string, Alternatives>()
  for (const term of terms) {
    const [subject, member] = equality(term) ?? []
    if (subject === undefined || member === undefined) continue
    const key = keyOf(subject, member)
    const known = lists.get(key)
    if (known === undefined) lists.set(key, { subject, members: [member] })
    else known.members.push(member)
  }
  const long = new Set([...lists].filter(([, { members }]) => members.length >= alternativesMin).map(([key]) => key))
  if (long.size === 0) return terms
  const rest = terms.filter((term) => {
    const [subject, member] = equality(term) ?? []
    return subject === undefined || member === undefined || !long.has(keyOf(subject, member))
  })
  return [...[...long].map((key) => membership(lists.get(key) as Alternatives)), ...rest]
}

function membership({ subject, members }: Alternatives): Expression {
  return {
    kind: 'call',
    name: 'in',
    args: [subject, ...members],
    type: dataType('BOOLEAN'),
    position: subject.position,
  }
}

function keyOf(subject: Expression, member: Expression): string {
  return `${subject.kind === 'column' ? subject.index : ''}:${member.type.name}`
}

/** The sides of `column = constant`, in that order, whichever way they are written. */
function equality(part: Expression): readonly [Expression, Expression] | undefined {
  if (part.kind !== 'call' || part.name !== '=') return undefined
  const [left, right] = part.args
  if (left?.kind === 'column' && right?.kind === 'constant') return comparable(left, right)
  return left?.kind === 'constant' && right?.kind === 'column' ? comparable(right, left) : undefined
}

/** Whether IN may compare the two: both strings or symbols, or of the same type. */
function comparable(column: Expression, constant: Expression): readonly [Expression, Expression] | undefined {
  const isText = (side: Expression): boolean => ['STRING', 'VARCHAR', 'SYMBOL'].includes(side.type.name)
  return sameType(column.type, constant.type) || (isText(column) && isText(constant)) ? [column, constant] : undefined
}

// Goal: our parser builds the same syntax trees as another SQL parser (an npm package), for the SQL that both support.
// Method: random SELECTs, parsed by both and compared as text. NOT, IN and BETWEEN are in parentheses, because the
// other parser gives them another precedence; names are in lower case.

import { createRequire } from 'node:module'
import { expect, it } from 'vitest'
import type { Select } from '../../../../engine/sql/ast/ast.js'
import { parseStatement } from '../../../../engine/sql/parse/parse.js'
import { createRandom, type Random } from '../../../support/random.js'
import { shape } from './shape.js'

interface Peer {
  readonly type?: string
  readonly variant?: string
  readonly format?: string
  readonly name?: string | Peer
  readonly value?: string
  readonly operation?: string
  readonly operator?: string
  readonly alias?: string
  readonly direction?: string
  readonly left?: Peer
  readonly right?: Peer
  readonly args?: Peer
  readonly expression?: Peer | readonly Peer[]
  readonly statement?: readonly Peer[]
  readonly result?: readonly Peer[]
  readonly where?: readonly Peer[]
  readonly group?: Peer
  readonly having?: Peer
  readonly order?: readonly Peer[]
}

const peerParse = createRequire(import.meta.url)('sqlite-parser') as (sql: string) => Peer

const levels: readonly (readonly string[])[] = [
  ['or'],
  ['and'],
  ['=', '<>'],
  ['<', '<=', '>', '>='],
  ['+', '-'],
  ['*', '/', '%'],
]

function randomExpression(random: Random, depth: number): string {
  if (depth === 0 || random.chance(0.2)) return randomLeaf(random)
  const inner = () => randomExpression(random, depth - 1)
  switch (random.below(8)) {
    case 0:
      return `(not (${inner()}))`
    case 1:
      return `((${inner()}) between (${inner()}) and (${inner()}))`
    case 2:
      return `((${inner()}) in (${inner()}, ${inner()}))`
    case 3:
      return `((${inner()}) is null)`
    case 4:
      return `f(${inner()}, ${inner()})`
    case 5:
      return `(${inner()})`
    default:
      return Array.from({ length: random.between(2, 4) }, inner).reduce(
        (left, right) => `${left} ${random.pick(random.pick(levels))} ${right}`,
      )
  }
}

function randomLeaf(random: Random): string {
  return random.pick(['a', 'b', 't.c', '1', '2.5', "'x'", 'null', 'count(*)'])
}

function randomSelect(random: Random): string {
  const parts = [`select ${randomExpression(random, 3)} as x, ${randomExpression(random, 1)} from t`]
  if (random.chance(0.7)) parts.push(`where ${randomExpression(random, 3)}`)
  if (random.chance(0.3)) parts.push(`group by ${randomExpression(random, 1)} having ${randomExpression(random, 2)}`)
  if (random.chance(0.3)) parts.push(`order by ${randomExpression(random, 1)} desc`)
  return parts.join(' ')
}

it('agrees with another parser', () => {
  const seed = 20_240
  const random = createRandom(seed)
  for (let i = 0; i < 150; i++) {
    const sql = randomSelect(random)
    expect(ourSummary(sql), `seed ${seed}: ${sql}`).toEqual(peerSummary(sql))
  }
})

function ourSummary(sql: string): unknown {
  const query = parseStatement(sql)
  if (query.kind !== 'query') throw new Error(query.kind)
  const body = query.body as Select
  return {
    items: body.items.map(({ expression, alias }) => [shape(expression), alias?.name]),
    where: body.where === null ? null : shape(body.where),
    group: body.groupBy.map(shape),
    having: body.having === null ? null : shape(body.having),
    order: query.orderBy.map(({ expression }) => shape(expression)),
  }
}

function peerSummary(sql: string): unknown {
  const select = peerParse(sql).statement?.[0] ?? {}
  return {
    items: (select.result ?? []).map((item) => [peerShape(item), item.alias]),
    where: select.where?.[0] === undefined ? null : peerShape(select.where[0]),
    group: select.group === undefined ? [] : peerList(select.group).map(peerShape),
    having: select.having === undefined ? null : peerShape(select.having),
    order: (select.order ?? []).map((item) => peerShape(item.variant === 'order' ? (item.expression as Peer) : item)),
  }
}

function peerList(node: Peer): readonly Peer[] {
  if (node.variant !== 'list') return [node]
  return Array.isArray(node.expression) ? node.expression : [node.expression as Peer]
}

function peerShape(node: Peer): string {
  if (node.type === 'identifier') return String(node.name)
  if (node.type === 'literal') return node.variant === 'text' ? `'${node.value}'` : String(node.value)
  if (node.type === 'function')
    return `(${[(node.name as Peer).name, ...(node.args === undefined ? [] : peerList(node.args).map(peerShape))].join(' ')})`
  if (node.format === 'unary') return `(${node.operator} ${peerShape(node.expression as Peer)})`
  const left = peerShape(node.left ?? {})
  const right = node.right ?? {}
  if (node.operation === 'between')
    return `(between ${left} ${peerShape(right.left ?? {})} ${peerShape(right.right ?? {})})`
  if (node.operation === 'in') return `(in ${left} ${peerList(right).map(peerShape).join(' ')})`
  if (node.operation === 'is') return `(is null ${left})`
  return `(${node.operation} ${left} ${peerShape(right)})`
}

// CREATE, ALTER and DROP SEQUENCE. A sequence is an entry of the catalog, as a view is one; counters.ts gives its numbers.

import { SqlError } from '../../base/errors.js'
import type { SequenceSchema } from '../../storage/schema.js'
import type { BindContext } from '../bind/bind-context.js'
import { isDescribed } from '../bind/bind-context.js'
import type * as ast from '../parse/ast.js'
import { counterOf, sequenceMissing } from './counters.js'
import { checkTableName } from './create-table.js'
import type { PlannedStatement } from './planned.js'
import { entrySchema } from './view-table.js'

/** Largest number by type. */
const largest: Readonly<Record<ast.SequenceType, bigint>> = {
  smallint: 2n ** 15n - 1n,
  integer: 2n ** 31n - 1n,
  bigint: 2n ** 63n - 1n,
}

const cacheMax = 1_000_000

export function planCreateSequence(statement: ast.CreateSequence, context: BindContext): PlannedStatement {
  const { sequence, ifNotExists, options } = statement
  const { name, position } = sequence
  const { catalog, evaluation } = context
  checkTableName(name, position)
  const numbers = numbersOf(options, position)
  const isTaken = catalog.table(name) !== undefined || catalog.view(name) !== undefined
  if (isTaken || catalog.counters?.last(name) !== undefined) {
    if (ifNotExists) return changed([], 'CREATE SEQUENCE')
    throw new SqlError(`table, view or sequence already exists [name=${name}]`, position)
  }
  const schema = { ...entrySchema(name, Number(evaluation.nowMicros)), sequence: numbers }
  return changed([{ kind: 'createTable', ifNotExists, schema }], 'CREATE SEQUENCE')
}

function numbersOf(options: ast.SequenceOptions, position: number): SequenceSchema {
  const { type, increment, cache, cycle } = options
  const refuse = (message: string): SqlError => new SqlError(message, position)
  if (increment === 0n) throw refuse('INCREMENT must not be zero')
  if (cache < 1 || cache > cacheMax) throw refuse(`CACHE must be from 1 to ${cacheMax} [cache=${cache}]`)
  const top = largest[type]
  const bottom = -top - 1n
  const up = increment > 0n
  const minimum = options.minimum ?? (up ? 1n : bottom)
  const maximum = options.maximum ?? (up ? top : -1n)
  if (minimum < bottom || maximum > top) throw refuse(`MINVALUE and MAXVALUE must be within ${type}`)
  if (minimum >= maximum) throw refuse(`MINVALUE (${minimum}) must be less than MAXVALUE (${maximum})`)
  const start = options.start ?? (up ? minimum : maximum)
  if (start < minimum) throw refuse(`START value (${start}) cannot be less than MINVALUE (${minimum})`)
  if (start > maximum) throw refuse(`START value (${start}) cannot be greater than MAXVALUE (${maximum})`)
  return {
    ...{ type, cache, cycle, given: null, start: String(start), increment: String(increment) },
    ...{ minimum: String(minimum), maximum: String(maximum) },
  }
}

/** RESTART takes effect at once, as setval() does. */
export function planAlterSequence(statement: ast.AlterSequence, context: BindContext): PlannedStatement {
  const { sequence, ifExists, restart } = statement
  const found = context.catalog.sequence?.(sequence.name)
  if (found === undefined && ifExists) return changed([], 'ALTER SEQUENCE')
  if (found === undefined) throw sequenceMissing(sequence.name, sequence.position)
  if (restart === undefined) return changed([], 'ALTER SEQUENCE')
  const first = restart ?? BigInt(found.sequence.start)
  if (!isDescribed(context)) context.catalog.counters?.set(sequence.name, first, false)
  return changed([], 'ALTER SEQUENCE')
}

export function planDropSequence(statement: ast.DropSequence, { catalog }: BindContext): PlannedStatement {
  const ids = statement.sequences.flatMap(({ name, position }) => {
    const found = catalog.sequence?.(name)
    if (found === undefined && !statement.ifExists) throw sequenceMissing(name, position)
    if (found === undefined) return []
    for (const { schema } of catalog.tables()) {
      const column = schema.columns.find((candidate) => !candidate.dropped && isNumbered(candidate, name))
      if (column !== undefined)
        throw new SqlError(
          `sequence is the default of a column [sequence=${name}, table=${schema.name}, column=${column.name}]`,
          position,
        )
    }
    return [found.id]
  })
  return changed(
    [...new Set(ids)].map((tableId) => ({ kind: 'dropTable', tableId })),
    'DROP SEQUENCE',
  )
}

function isNumbered(column: Parameters<typeof counterOf>[0], name: string): boolean {
  return counterOf(column)?.toLowerCase() === name.toLowerCase()
}

type Change = Extract<PlannedStatement, { kind: 'change' }>

function changed(changes: Change['changes'], tag: string): PlannedStatement {
  return { kind: 'change', changes, tag }
}

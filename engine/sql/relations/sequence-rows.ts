// Catalog rows about sequences: those of CREATE SEQUENCE, and the counters of `serial` and identity columns, which
// PostgreSQL's clients see as sequences owned by their column.

import type { SequenceSchema } from '../../storage/schema/schema.js'
import type { RowRecord } from '../pg-catalog/catalog.js'
import { databaseName, ownerOid } from '../pg-catalog/database.js'
import { firstOid } from '../pg-catalog/types.js'
import type { BindContext } from '../scope/bind-context.js'
import { type ColumnCounter, defaultOid, ownCounters } from './entries.js'
import { namespaces } from './namespaces.js'

const typeOids = { smallint: 21, integer: 23, bigint: 20 } as const
const digits = { smallint: 16, integer: 32, bigint: 64 } as const
const bits = { smallint: 15n, integer: 31n, bigint: 63n } as const

interface ShownSequence {
  readonly oid: number
  readonly name: string
  readonly sequence: SequenceSchema
}

function sequencesOf({ catalog }: BindContext): ShownSequence[] {
  const made = catalog.sequences?.() ?? []
  return [
    ...made.map(({ id, name, sequence }) => ({ oid: firstOid + id, name, sequence })),
    ...ownCounters({ catalog }).map((counter) => {
      const last = catalog.counters?.last(counter.name) ?? 0n
      return { oid: counter.oid, name: counter.name, sequence: counterNumbers(counter, last) }
    }),
  ]
}

/** A column counter as a sequence that starts at 1 and ends at the maximum of the column's type. */
export function counterNumbers({ type: { name } }: Pick<ColumnCounter, 'type'>, last: bigint): SequenceSchema {
  const type = name === 'SHORT' ? 'smallint' : name === 'INT' ? 'integer' : 'bigint'
  const maximum = String(2n ** bits[type] - 1n)
  const given = last === 0n ? null : String(last)
  return { type, start: '1', increment: '1', minimum: '1', maximum, cycle: false, cache: 1, given }
}

/** Rows of pg_class. */
export function sequenceClasses(context: BindContext): RowRecord[] {
  return sequencesOf(context).map(({ oid, name }) => ({
    ...{ oid, relname: name, relnamespace: namespaces.public, relowner: ownerOid },
    ...{ relfilenode: oid, relpages: 1, reltuples: 1, relpersistence: 'p', relkind: 'S', relnatts: 3 },
    ...{ relispopulated: true, relreplident: 'n' },
  }))
}

const classes = { pg_class: 1259, pg_attrdef: 2604 } as const

/**
 * Rows of pg_depend. A counter depends on its column, and the column's default on the counter; an identity column has
 * no default.
 */
export function sequenceOwners({ catalog }: BindContext): RowRecord[] {
  return ownCounters({ catalog }).flatMap(({ oid, tableOid, attribute, isIdentity }) => {
    const counter = { classid: classes.pg_class, objid: oid, objsubid: 0 }
    const column = { refclassid: classes.pg_class, refobjid: tableOid, refobjsubid: attribute }
    const asks = { classid: classes.pg_attrdef, objid: defaultOid(tableOid, attribute - 1), objsubid: 0 }
    if (isIdentity) return [{ ...counter, ...column, deptype: 'i' }]
    return [
      { ...counter, ...column, deptype: 'a' },
      { ...asks, ...column, deptype: 'a' },
      { ...asks, refclassid: classes.pg_class, refobjid: oid, refobjsubid: 0, deptype: 'n' },
    ]
  })
}

export function pgSequences(context: BindContext): RowRecord[] {
  return sequencesOf(context).map(({ name, sequence }) => {
    const last = context.catalog.counters?.last(name) ?? 0n
    return {
      ...{ schemaname: 'public', sequencename: name, sequenceowner: context.evaluation.user },
      ...{ data_type: typeOids[sequence.type], start_value: BigInt(sequence.start) },
      ...{ min_value: BigInt(sequence.minimum), max_value: BigInt(sequence.maximum) },
      ...{ increment_by: BigInt(sequence.increment), cycle: sequence.cycle, cache_size: BigInt(sequence.cache) },
      last_value: sequence.given === null ? null : last,
    }
  })
}

export function pgSequence(context: BindContext): RowRecord[] {
  return sequencesOf(context).map(({ oid, sequence }) => ({
    ...{ seqrelid: oid, seqtypid: typeOids[sequence.type], seqstart: BigInt(sequence.start) },
    ...{ seqincrement: BigInt(sequence.increment), seqmax: BigInt(sequence.maximum) },
    ...{ seqmin: BigInt(sequence.minimum), seqcache: BigInt(sequence.cache), seqcycle: sequence.cycle },
  }))
}

/** Rows of information_schema.sequences. */
export function informationSequences(context: BindContext): RowRecord[] {
  return sequencesOf(context).map(({ name, sequence: { type, start, minimum, maximum, increment, cycle } }) => ({
    ...{ sequence_catalog: databaseName, sequence_schema: 'public', sequence_name: name, data_type: type },
    ...{ numeric_precision: digits[type], numeric_precision_radix: 2, numeric_scale: 0, start_value: start },
    ...{ minimum_value: minimum, maximum_value: maximum, increment, cycle_option: cycle ? 'YES' : 'NO' },
  }))
}

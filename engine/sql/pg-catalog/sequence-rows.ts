// Sequences as the catalogs show them. Counters of columns are none: they belong to their column.

import type { StoredSequence } from '../../storage/schema.js'
import type { BindContext } from '../bind/bind-context.js'
import type { RowRecord } from './catalog.js'
import { databaseName, ownerOid } from './database.js'
import { firstOid, namespaces } from './entries.js'

const typeOids = { smallint: 21, integer: 23, bigint: 20 } as const
const digits = { smallint: 16, integer: 32, bigint: 64 } as const

function sequencesOf({ catalog }: BindContext): readonly StoredSequence[] {
  return catalog.sequences?.() ?? []
}

/** Rows of pg_class. */
export function sequenceClasses(context: BindContext): RowRecord[] {
  return sequencesOf(context).map(({ id, name }) => ({
    ...{ oid: firstOid + id, relname: name, relnamespace: namespaces.public, relowner: ownerOid },
    ...{ relfilenode: firstOid + id, relpages: 1, reltuples: 1, relpersistence: 'p', relkind: 'S', relnatts: 3 },
    ...{ relispopulated: true, relreplident: 'n' },
  }))
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
  return sequencesOf(context).map(({ id, sequence }) => ({
    ...{ seqrelid: firstOid + id, seqtypid: typeOids[sequence.type], seqstart: BigInt(sequence.start) },
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

// Operator: SELECT DISTINCT over one symbol column (dictionary-encoded strings) of a table, without reading all rows.
// Each part (Parquet file) lists the symbols that it contains. A part is skipped if all of its symbols have been found
// already; otherwise it is read only until they have been. If this takes too many steps, because a filter excludes a
// symbol or a symbol is rare, all rows are grouped instead, as for any other column.

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { createGrouping } from '../batch/group-keys.js'
import { type Batch, isBatch, type Operator, type Pull, type Vector } from '../batch/vector.js'
import type { Run, ScanMorsel } from '../scan/morsels.js'
import { orderedScanOperator, shortWalkSteps } from '../scan/scan-ordered.js'
import { scanShape } from '../scan/scan-shape.js'

type PlanOf<Kind extends Plan['kind']> = Extract<Plan, { kind: Kind }>

/** undefined for any other plan. `otherwise` builds the operator that groups all rows. */
export function distinctSymbols(
  context: ExecContext,
  plan: PlanOf<'distinct'>,
  otherwise: () => Operator,
): Operator | undefined {
  const scanned = symbolScan(plan)
  const shape = scanned === undefined ? null : scanShape(context, scanned.scan)
  if (scanned === undefined || shape === null) return undefined
  const known = new KnownSymbols(context, plan, shape.columnIds[scanned.column] as number)
  const skips = (source: ScanMorsel | Run): boolean => known.hasAllOf(source)
  const walk = orderedScanOperator(context, shape, scanned.scan.order === 'descending', skips)
  let all: Operator | null = null
  let steps = 0
  let over = false
  const pull = (): Pull => {
    if (all !== null) return all.pull()
    if (over) return known.unsent()
    const pulled = walk.pull()
    if (pulled === 'waiting') return pulled
    if (isBatch(pulled)) known.add(pulled.vectors[scanned.column] as Vector, pulled.rows)
    over = pulled === null
    if (!over && ++steps > shortWalkSteps) all = otherwise()
    return 'working'
  }
  return { pull }
}

/** The table scan below the plan, and its symbol column; undefined if the plan is of another form. */
function symbolScan({
  input,
  columns,
}: PlanOf<'distinct'>): { readonly scan: PlanOf<'scan'>; readonly column: number } | undefined {
  if (columns.length !== 1 || columns[0]?.type.name !== 'SYMBOL') return undefined
  if (input.kind === 'scan') return { scan: input, column: 0 }
  if (input.kind !== 'project' || input.input.kind !== 'scan') return undefined
  const [expression] = input.expressions
  return expression?.kind === 'column' ? { scan: input.input, column: expression.index } : undefined
}

/** The symbols of a part. */
interface Wanted {
  readonly ids: Int32Array
  /** All symbols before this index have been found. */
  next: number
}

class KnownSymbols {
  readonly #columnId: number
  readonly #groups: ReturnType<typeof createGrouping>
  readonly #memory: ExecContext['memory']
  readonly #ids = new Set<number>()
  /** null: the part does not list its symbols. */
  readonly #parts = new Map<number | Run, Wanted | null>()
  #sent = 0
  #noted = 0

  constructor(context: ExecContext, { columns }: PlanOf<'distinct'>, columnId: number) {
    this.#memory = context.memory
    this.#columnId = columnId
    this.#groups = createGrouping(
      context,
      columns.map(({ type }) => type),
      true,
    )
  }

  add(symbols: Vector, rows: number): void {
    this.#groups.assign([symbols], rows, 0)
    for (;;) {
      const batch = this.#groups.keys.batchAt(this.#noted, this.#groups.count)
      if (batch === null) return
      const first = (batch.vectors[0] as Vector).address >>> 2
      for (let row = 0; row < batch.rows; row++) this.#ids.add(this.#memory.i32[first + row]!)
      this.#noted += batch.rows
    }
  }

  unsent(): Batch | null {
    const batch = this.#groups.keys.batchAt(this.#sent, this.#groups.count)
    if (batch !== null) this.#sent += batch.rows
    return batch
  }

  /** Whether these rows cannot have a new symbol. */
  hasAllOf(source: ScanMorsel | Run): boolean {
    if (this.#ids.size === 0) return false
    const wanted = this.#wantedOf(source)
    if (wanted === null) return false
    const { ids } = wanted
    while (wanted.next < ids.length && this.#ids.has(ids[wanted.next]!)) wanted.next++
    if (wanted.next < ids.length) return false
    return this.#ids.has(-1) || source.nulls?.(this.#columnId) === 0
  }

  /** The symbols are listed by part, for all its morsels. */
  #wantedOf(source: ScanMorsel | Run): Wanted | null {
    const part = 'source' in source ? source.source : source
    let wanted = this.#parts.get(part)
    if (wanted === undefined) {
      const ids = source.symbols?.(this.#columnId)
      wanted = ids === undefined ? null : { ids, next: 0 }
      this.#parts.set(part, wanted)
    }
    return wanted
  }
}

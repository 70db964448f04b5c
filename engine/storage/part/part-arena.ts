// A job's arena: one block of memory, allocated when the job starts and divided among its buffers. As a job starts only
// when it has this block, two jobs cannot block each other forever, each with some of the memory that both need.
// Buffers that do not fit into the block are allocated outside of it.

import { assert } from '../../base/assert.js'
import type { Allocator, Budget } from '../../memory/budgets.js'

interface Span {
  readonly address: number
  readonly bytes: number
}

/** An allocator within one block of another allocator, which serves requests that do not fit. */
export class Arena implements Allocator {
  private readonly outer: Allocator
  private readonly budget: Budget
  private readonly block: Span
  /** Free spans in address order, coalesced. */
  private gaps: Span[]
  private readonly taken = new Map<number, number>()

  private constructor(outer: Allocator, budget: Budget, block: Span) {
    this.outer = outer
    this.budget = budget
    this.block = block
    this.gaps = [block]
  }

  /** Undefined if the budget has no such block at present. */
  static take(outer: Allocator, budget: Budget, bytes: number): Arena | undefined {
    const rounded = (bytes + 63) & ~63
    const address = outer.allocate(rounded, budget)
    return address === 0 ? undefined : new Arena(outer, budget, { address, bytes: rounded })
  }

  allocate(bytes: number): number {
    const wanted = (bytes + 63) & ~63
    const index = this.gaps.findIndex((gap) => gap.bytes >= wanted)
    const gap = this.gaps[index]
    if (gap === undefined) return this.outer.allocate(bytes, this.budget)
    const rest = { address: gap.address + wanted, bytes: gap.bytes - wanted }
    this.gaps.splice(index, 1, ...(rest.bytes > 0 ? [rest] : []))
    this.taken.set(gap.address, wanted)
    return gap.address
  }

  allocateOrThrow(bytes: number): number {
    const address = this.allocate(bytes)
    return address !== 0 ? address : this.outer.allocateOrThrow(bytes, this.budget)
  }

  free(address: number): void {
    const bytes = this.taken.get(address)
    if (bytes === undefined) {
      this.outer.free(address)
      return
    }
    this.taken.delete(address)
    this.gaps = joined([...this.gaps, { address, bytes }].sort((x, y) => x.address - y.address))
  }

  used(): number {
    return this.outer.used(this.budget)
  }

  limit(): number {
    return this.outer.limit(this.budget)
  }

  release(): void {
    assert(this.taken.size === 0, 'A2: an arena is given back when nothing in it is used')
    assert(this.gaps.length === 1, 'A2: the free spans of an unused arena are one')
    this.outer.free(this.block.address)
  }
}

function joined(spans: readonly Span[]): Span[] {
  const out: Span[] = []
  for (const span of spans) {
    const last = out.at(-1)
    if (last !== undefined && last.address + last.bytes === span.address) {
      out[out.length - 1] = { address: last.address, bytes: last.bytes + span.bytes }
    } else out.push(span)
  }
  return out
}

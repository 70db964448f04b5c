// Goal: the kernel finds exactly the templates that the index has, and removing one does not take longer with more of
// them. Method: random additions and removals beside a map of names; a kernel that counts its lookups.

import { expect, test } from 'vitest'
import { type IlpKernel, ilpKinds, ilpTemplateSize, writeIlpTemplate } from '../../../engine/kernels/ilp.js'
import * as layout from '../../../engine/kernels/ilp-layout.js'
import { loadKernels } from '../../../engine/kernels/load.js'
import { TemplateIndex } from '../../../engine/lines/template-index.js'
import { createAllocator, initializeHeap } from '../../../engine/memory/allocator.js'
import { createSharedMemory } from '../../../engine/memory/shared-memory.js'
import { createRandom } from '../../support/random.js'

const MIB = 1024 * 1024

test('a template that is removed leaves all others', () => {
  const memory = createSharedMemory(32 * MIB)
  initializeHeap(memory, { limits: [16 * MIB, MIB, MIB, MIB, MIB] })
  const allocator = createAllocator(memory, 1)
  const { ilp } = loadKernels(memory)
  let lookups = 0
  const kernel: IlpKernel = {
    ...ilp,
    templateSlot: (templates, mask, name) => {
      lookups++
      return ilp.templateSlot(templates, mask, name)
    },
  }
  const index = new TemplateIndex<string>(memory, allocator, kernel)
  const newTemplate = (name: string): number => {
    const tags = [{ key: Buffer.from('s='), kind: ilpKinds.symbol }]
    const form = { name: Buffer.from(name), tags, fields: [], nanos: false }
    const address = allocator.allocateOrThrow(ilpTemplateSize(form), 0)
    writeIlpTemplate(memory, address, form)
    return address
  }
  const templates = Array.from({ length: 3000 }, (_, nth) => ({
    name: `table_${nth}`,
    at: newTemplate(`table_${nth}`),
  }))
  const found = (template: number): number => {
    const name = memory.u32[(template + layout.templateNameAddress) >>> 2]!
    return memory.u32[(ilp.templateSlot(index.address, index.mask, name) >>> 0) >>> 2]!
  }
  const random = createRandom(7)
  const present = new Set<number>()
  let most = 0
  for (let step = 0; step < 20_000; step++) {
    const { name, at } = random.pick(templates)
    if (!present.has(at)) {
      index.reserve()
      index.add(at, name)
      present.add(at)
    } else if (random.chance(0.5)) {
      lookups = 0
      index.remove(at)
      most = Math.max(most, lookups)
      present.delete(at)
      index.remove(at)
    }
    if (step % 2000 > 0) continue
    expect(index.count).toBe(present.size)
    const places = templates.map(({ at: place }) => (present.has(place) ? place : 0))
    expect(templates.map(({ at: place }) => found(place))).toEqual(places)
    const owners = templates.map(({ name: other, at: place }) => (present.has(place) ? other : undefined))
    expect(templates.map(({ at: place }) => index.owner(place))).toEqual(owners)
  }
  expect(present.size).toBeGreaterThan(1000)
  expect(most).toBeLessThan(200)
})

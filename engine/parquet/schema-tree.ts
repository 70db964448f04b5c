// Walks the schema of a Parquet file that another program wrote: a list of elements in depth-first order, each with the
// number of its children.

import type { ParquetTypes } from '../storage/part/parquet-thrift.js'
import type { ForeignFile } from './foreign-file.js'

export type Element = ParquetTypes.SchemaElement

/** Numbers of the format. */
export const repetitions = { required: 0, optional: 1, repeated: 2 } as const
export const converted = {
  ...{ map: 1, keyValue: 2, list: 3, utf8: 0, enum: 4, decimal: 5, date: 6, millis: 9, micros: 10, json: 19 },
  ...{ uint8: 11, uint16: 12, uint32: 13, uint64: 14, int8: 15, int16: 16 },
} as const

/** A place before an element, and the number of leaves before it. */
interface SchemaPlace {
  readonly at: number
  readonly leaves: number
}

/** The elements of a schema in depth-first order. */
export class SchemaTree {
  readonly #file: ForeignFile
  readonly #elements: readonly Element[]
  #at = 0
  leaves = 0
  hasStructs = false

  constructor(file: ForeignFile, elements: readonly Element[]) {
    this.#file = file
    this.#elements = elements
  }

  get ended(): boolean {
    return this.#at === this.#elements.length
  }

  next(): Element {
    const element = this.#elements[this.#at++]
    if (element === undefined || typeof element.name !== 'string') throw this.#file.error('the schema is damaged')
    return element
  }

  place(): SchemaPlace {
    return { at: this.#at, leaves: this.leaves }
  }

  back({ at, leaves }: SchemaPlace): void {
    this.#at = at
    this.leaves = leaves
  }

  /** Behind the element at the place, and all below it. */
  skip(place: SchemaPlace): void {
    this.back(place)
    for (let left = 1; left > 0; left--) {
      const children = this.children(this.next())
      left += children
      if (children === 0) this.leaves++
    }
  }

  children({ num_children: count }: Element): number {
    const children = count ?? 0
    if (children < 0 || children > this.#elements.length - this.#at) throw this.#file.error('the schema is damaged')
    return children
  }
}

export function repetitionOf({ repetition_type: repetition }: Element): number {
  return Number(repetition ?? repetitions.required)
}

export function isList({ converted_type: type, logicalType }: Element): boolean {
  return type === converted.list || isSet(logicalType?.LIST)
}

export function isMap({ converted_type: type, logicalType }: Element): boolean {
  return type === converted.map || type === converted.keyValue || isSet(logicalType?.MAP)
}

export function isStruct(element: Element): boolean {
  return repetitionOf(element) !== repetitions.repeated && !isList(element) && !isMap(element)
}

export function isSet(value: unknown): boolean {
  return value !== null && value !== undefined
}

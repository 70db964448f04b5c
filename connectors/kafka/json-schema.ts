// Looks up the type of a value of a Kafka record in a JSON Schema. A value is identified by its path: the names of the
// nested members, joined with `_`. As names may contain `_` too, the look-up tries every property whose name is a
// beginning of the path. A schema may contain itself: the look-up descends only as far as the path goes.
//
// The keywords that count are `type`, `format` (date-time, date), `properties`, `patternProperties`,
// `additionalProperties`, `$ref` (also to other schemas, by their `$id`), `allOf`, `anyOf`, `oneOf`, and what Kafka
// Connect writes into schemas (`connect.type`, `connect.parameters`, and names of its types in `title`). Records are
// not validated, since their producer did that.

import { type ConnectType, type ConnectTypes, namedType } from './connect-schema.js'
import type { SchemaText } from './schema-registry.js'

const referencesMax = 32
/** Nodes of one look-up: alternatives that contain each other would take for ever. */
const stepsMax = 10_000
const typesMax = 10_000

type Node = Readonly<Record<string, unknown>>

/** A node of a schema, and the schema that its references are relative to. */
interface Place {
  readonly node: Node
  readonly root: Node
}

export class JsonSchema {
  readonly #root: Node
  /** Other schemas by the names in `$ref`. */
  readonly #others = new Map<string, Node>()
  #steps = 0

  /** `schemas` as of SchemaRegistry.schema. Throws Error when they are not JSON. */
  constructor(schemas: readonly SchemaText[]) {
    let root: Node = {}
    for (const { name, text } of schemas) {
      const parsed: unknown = JSON.parse(text)
      root = nodeOf(parsed) ?? {}
      const id = stringOf(root['$id'] ?? root['id'])
      for (const known of [name, id]) if (known !== '') this.#others.set(withoutFragment(known), root)
    }
    this.#root = root
  }

  /** The types of values that are named with the prefix; `fallback` as in JsonReader.read. */
  types(prefix: string, fallback: string): ConnectTypes {
    const known = new Map<string, ConnectType | undefined>()
    return {
      get: (path) => {
        if (known.has(path)) return known.get(path)
        if (known.size >= typesMax) known.clear()
        const type = this.#typeOf(path, prefix, fallback)
        known.set(path, type)
        return type
      },
    }
  }

  #typeOf(path: string, prefix: string, fallback: string): ConnectType | undefined {
    this.#steps = 0
    const place = { node: this.#root, root: this.#root }
    if (prefix === '') return this.#within(place, path, 0) ?? (path === fallback ? this.#leaf(place, 0) : undefined)
    if (path === prefix) return this.#leaf(place, 0)
    return path.startsWith(`${prefix}_`) ? this.#within(place, path.slice(prefix.length + 1), 0) : undefined
  }

  /** The type of the value with the path `rest` within an object. */
  #within(place: Place, rest: string, hops: number): ConnectType | undefined {
    for (const [key, member] of this.#members(place, rest)) {
      const isAll = key.length === rest.length
      const type = isAll ? this.#leaf(member, 0) : this.#within(member, rest.slice(key.length + 1), 0)
      if (type !== undefined) return type
    }
    if (hops >= referencesMax || ++this.#steps > stepsMax) return undefined
    for (const alternative of this.#alternatives(place)) {
      const type = this.#within(alternative, rest, hops + 1)
      if (type !== undefined) return type
    }
    return undefined
  }

  /** Members that the path may begin with, those that the schema names first. */
  *#members({ node, root }: Place, rest: string): Iterable<readonly [key: string, place: Place]> {
    const properties = nodeOf(node['properties']) ?? {}
    for (const [key, schema] of Object.entries(properties)) {
      const member = nodeOf(schema)
      if (member !== undefined && (rest === key || rest.startsWith(`${key}_`))) yield [key, { node: member, root }]
    }
    const patterns = Object.entries(nodeOf(node['patternProperties']) ?? {})
    const more = nodeOf(node['additionalProperties'])
    if (more === undefined && patterns.length === 0) return
    for (const key of beginnings(rest)) {
      for (const [pattern, schema] of patterns) {
        const member = nodeOf(schema)
        if (member !== undefined && matches(pattern, key)) yield [key, { node: member, root }]
      }
      if (more !== undefined) yield [key, { node: more, root }]
    }
  }

  /** What `$ref` and the combinations of schemas add to a node. */
  *#alternatives({ node, root }: Place): Iterable<Place> {
    const reference = stringOf(node['$ref'])
    const target = reference === '' ? undefined : this.#referenced(reference, root)
    if (target !== undefined) yield target
    for (const key of ['allOf', 'anyOf', 'oneOf']) {
      const list: unknown = node[key]
      if (!Array.isArray(list)) continue
      for (const item of list) {
        const member = nodeOf(item)
        if (member !== undefined) yield { node: member, root }
      }
    }
  }

  #referenced(reference: string, root: Node): Place | undefined {
    const [name = '', pointer = ''] = reference.split('#', 2)
    const target = name === '' ? root : this.#named(name, root)
    if (target === undefined) return undefined
    let node: Node | undefined = target
    for (const part of pointer.split('/').slice(1)) {
      node = nodeOf(node?.[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')])
    }
    return node === undefined ? undefined : { node, root: target }
  }

  #named(name: string, root: Node): Node | undefined {
    const base = stringOf(root['$id'] ?? root['id'])
    const whole = URL.canParse(name, base === '' ? undefined : base) ? new URL(name, base || undefined).href : ''
    return this.#others.get(name) ?? this.#others.get(whole)
  }

  /** The type of a value that is no object. Of several alternatives, one with fractions makes a number a double. */
  #leaf(place: Place, hops: number): ConnectType | undefined {
    const own = leafType(place.node)
    if (own !== undefined && own.kind !== 'integer') return own
    if (hops >= referencesMax || ++this.#steps > stepsMax) return own
    let found = own
    for (const alternative of this.#alternatives(place)) {
      const type = this.#leaf(alternative, hops + 1)
      if (type !== undefined && type.kind !== 'integer') return type
      found ??= type
    }
    return found
  }
}

function leafType(node: Node): ConnectType | undefined {
  const known = namedType(node['title'], nodeOf(node['connect.parameters']))
  if (known !== undefined) return known
  const types = Array.isArray(node['type']) ? node['type'] : [node['type']]
  const connect = node['connect.type']
  if (connect === 'bytes') return { kind: 'bytes' }
  if (types.includes('number')) return /^int/.test(stringOf(connect)) ? { kind: 'integer' } : { kind: 'double' }
  if (types.includes('integer')) return { kind: 'integer' }
  const isTime = node['format'] === 'date-time' || node['format'] === 'date'
  return isTime && types.includes('string') ? { kind: 'zoned' } : undefined
}

/** Where the key of a member may end within a path: at its end, or before a `_`. */
function* beginnings(path: string): Iterable<string> {
  yield path
  for (let end = path.lastIndexOf('_'); end > 0; end = path.lastIndexOf('_', end - 1)) yield path.slice(0, end)
}

function matches(pattern: string, key: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(key)
  } catch {
    return false
  }
}

function nodeOf(value: unknown): Node | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Node) : undefined
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function withoutFragment(name: string): string {
  return name.split('#', 1)[0] ?? ''
}

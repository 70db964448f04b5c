// Reads JSON into columns of a row, value by value: numbers keep their digits, nested objects become paths, and no
// JavaScript objects are created. The WebAssembly kernel (json-kernel.ts) handles regular records; this reader handles
// everything and reports errors with their position.

import { BadRecordError } from './bad-record.js'
import { type ConnectType, type ConnectTypes, connectTypes, numberOfType, textOfType } from './connect-schema.js'
import type { RowMapper } from './row-mapper.js'

const depthMax = 64
const elementsMax = 1_000_000
const schemasMax = 1000
const utf8 = new TextDecoder('utf-8', { fatal: true })
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** An array of numbers being read. */
interface Numbers {
  readonly values: number[]
  /** Lengths by depth; -1: not known yet. */
  readonly shape: number[]
}

/** Called with each quoted key and its parent object; returns the key's id as a parent of others. */
export interface KeyLearner {
  readonly root: number
  learn(parent: number, key: Uint8Array, path: string): number
}

export class JsonReader {
  #bytes: Buffer = Buffer.alloc(0)
  #text = ''
  #at = 0
  readonly #mapper: RowMapper
  readonly #learner: KeyLearner | null
  /** Types of the current envelope. */
  #types: ConnectTypes | null = null
  /** Parsed schemas by prefix and text. */
  readonly #schemas = new Map<string, ConnectTypes>()
  /** The last schema of each prefix, which is almost always the next one, too. */
  readonly #lastSchemas = new Map<string, { readonly text: string; readonly types: ConnectTypes }>()

  constructor(mapper: RowMapper, learner: KeyLearner | null = null) {
    this.#mapper = mapper
    this.#learner = learner
  }

  /**
   * Reads one value. Members of an object become columns named by the prefix and their paths; any other value becomes
   * the column `prefix`, or `fallback` when that is empty. `isEnvelope`: reads the payload of `{"schema": ..,
   * "payload": ..}`. Returns false for an envelope whose payload is null.
   */
  read(bytes: Uint8Array, prefix: string, fallback: string, isEnvelope = false): boolean {
    this.#begin(bytes, null)
    let isThere = true
    if (isEnvelope) isThere = this.#envelope(prefix, fallback)
    else if (this.#text[this.#at] === '{') this.#object(prefix, 0, this.#learner?.root ?? 0)
    else this.#value(prefix === '' ? fallback : prefix, 0, 0)
    this.#end()
    return isThere
  }

  /** Reads one value like `read`; its types are known. */
  readTyped(bytes: Uint8Array, prefix: string, fallback: string, types: ConnectTypes): void {
    this.#begin(bytes, types)
    if (this.#text[this.#at] === '{') this.#object(prefix, 0, 0)
    else this.#value(prefix === '' ? fallback : prefix, 0, 0)
    this.#end()
  }

  #begin(bytes: Uint8Array, types: ConnectTypes | null): void {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    // One character per byte, so that positions are byte offsets.
    this.#text = this.#bytes.toString('latin1')
    this.#at = 0
    this.#types = types
    this.#blanks()
  }

  #end(): void {
    this.#blanks()
    if (this.#at < this.#text.length) throw this.#error('characters after the value')
  }

  /** Reads the payload after the schema, whatever their order. */
  #envelope(prefix: string, fallback: string): boolean {
    let payloadAt = -1
    this.#members((name) => {
      if (name === 'schema') this.#types = this.#schema(prefix, fallback)
      else {
        if (name === 'payload') payloadAt = this.#at
        this.#skip(0)
      }
    })
    if (payloadAt < 0) throw new BadRecordError("the record has no member 'payload'")
    if (this.#text[payloadAt] === 'n') return false
    const end = this.#at
    this.#at = payloadAt
    if (this.#text[this.#at] === '{') this.#object(prefix, 0, 0)
    else this.#value(prefix === '' ? fallback : prefix, 0, 0)
    this.#at = end
    return true
  }

  #schema(prefix: string, fallback: string): ConnectTypes {
    const last = this.#lastSchemas.get(prefix)
    if (last !== undefined && this.#text.startsWith(last.text, this.#at)) {
      this.#at += last.text.length
      return last.types
    }
    const start = this.#at
    this.#skip(0)
    const text = this.#bytes.toString('utf8', start, this.#at)
    const id = `${prefix} ${text}`
    const types = this.#schemas.get(id) ?? connectTypes(text, prefix, fallback)
    if (this.#schemas.size >= schemasMax) this.#schemas.clear()
    this.#schemas.set(id, types)
    // A number's text may be a prefix of another one's.
    const isObject = this.#text[start] === '{'
    if (isObject) this.#lastSchemas.set(prefix, { text: this.#text.slice(start, this.#at), types })
    return types
  }

  #object(prefix: string, depth: number, parent: number): void {
    if (depth > depthMax) throw this.#error('objects are nested too deeply')
    this.#members((name, key) => {
      const path = prefix === '' ? name : `${prefix}_${name}`
      this.#value(path, depth + 1, parent === 0 ? 0 : (this.#learner?.learn(parent, key, path) ?? 0))
    })
  }

  #members(value: (name: string, key: Uint8Array) => void): void {
    this.#expect('{')
    this.#blanks()
    if (this.#take('}')) return
    for (;;) {
      this.#blanks()
      const start = this.#at
      const name = this.#string()
      const key = this.#bytes.subarray(start, this.#at)
      this.#blanks()
      this.#expect(':')
      this.#blanks()
      value(name, key)
      this.#blanks()
      if (this.#take('}')) return
      this.#expect(',')
    }
  }

  /** `self`: the key of the value, as parent of the keys within it. */
  #value(path: string, depth: number, self: number): void {
    switch (this.#text[this.#at]) {
      case '{':
        this.#object(path, depth, self)
        return
      case '"':
        this.#words(path)
        return
      case '[':
        this.#array(path, depth)
        return
      case 't':
        this.#word('true')
        this.#mapper.boolean(path, true)
        return
      case 'f':
        this.#word('false')
        this.#mapper.boolean(path, false)
        return
      case 'n':
        this.#word('null')
        this.#mapper.missing(path)
        return
      default:
        this.#numeral(path)
    }
  }

  #words(path: string): void {
    const type = this.#typeOf(path)
    const text = this.#string()
    if (type === undefined) this.#mapper.text(path, text)
    else textOfType(this.#mapper, type, path, text)
  }

  #numeral(path: string): void {
    const type = this.#typeOf(path)
    const text = this.#number()
    if (type === undefined) this.#mapper.number(path, text)
    else numberOfType(this.#mapper, type, path, text)
  }

  #typeOf(path: string): ConnectType | undefined {
    return this.#types === null ? undefined : this.#types.get(path)
  }

  /** Numbers of a rectangular array become an array of doubles; other arrays are unsupported. */
  #array(path: string, depth: number): void {
    const start = this.#at
    const numbers: Numbers = { values: [], shape: [] }
    const problem = this.#elements(numbers, 0)
    if (problem === '') {
      this.#mapper.array(path, numbers.shape, numbers.values)
      return
    }
    this.#at = start
    this.#skip(depth)
    this.#mapper.unsupported(path, problem)
  }

  #elements(numbers: Numbers, level: number): string {
    if (level >= 32) return 'an array of more than 32 dimensions'
    this.#expect('[')
    this.#blanks()
    let count = 0
    if (!this.#take(']')) {
      for (;;) {
        this.#blanks()
        const problem = this.#element(numbers, level)
        if (problem !== '') return problem
        if (++count > elementsMax) return 'an array that is too long'
        this.#blanks()
        if (this.#take(']')) break
        this.#expect(',')
      }
    }
    const known = numbers.shape[level]
    if (known !== undefined && known >= 0 && known !== count) return 'an array whose rows differ in length'
    numbers.shape[level] = count
    return ''
  }

  #element(numbers: Numbers, level: number): string {
    const first = this.#text[this.#at] ?? ''
    if (first === '[') {
      if (numbers.values.length > 0 && numbers.shape[level + 1] === undefined) return 'an array of numbers and arrays'
      numbers.shape[level] ??= -1
      return this.#elements(numbers, level + 1)
    }
    if (!/[-0-9]/.test(first)) return `an array of ${kindOf(first)}`
    if (numbers.shape.length > level + 1) return 'an array of numbers and arrays'
    numbers.values.push(Number(this.#number()))
    return ''
  }

  /** Skips a value. */
  #skip(depth: number): void {
    if (depth > depthMax) throw this.#error('values are nested too deeply')
    const first = this.#text[this.#at]
    if (first === '{') this.#members(() => this.#skip(depth + 1))
    else if (first === '"') this.#string()
    else if (first === 't') this.#word('true')
    else if (first === 'f') this.#word('false')
    else if (first === 'n') this.#word('null')
    else if (first === '[') this.#skipArray(depth)
    else this.#number()
  }

  #skipArray(depth: number): void {
    this.#expect('[')
    this.#blanks()
    if (this.#take(']')) return
    for (;;) {
      this.#blanks()
      this.#skip(depth + 1)
      this.#blanks()
      if (this.#take(']')) return
      this.#expect(',')
    }
  }

  #number(): string {
    number.lastIndex = this.#at
    const match = number.exec(this.#text)
    if (match === null) throw this.#error('no value')
    this.#at += match[0].length
    return match[0]
  }

  #string(): string {
    if (this.#text[this.#at] !== '"') throw this.#error('expected "')
    const start = ++this.#at
    for (; this.#at < this.#text.length; this.#at++) {
      const code = this.#text.charCodeAt(this.#at)
      if (code === 34) return this.#decoded(start, this.#at++)
      if (code === 92) return this.#escaped(start)
      if (code < 32) throw this.#error('a control character in a string')
    }
    throw this.#error('an unterminated string')
  }

  #decoded(start: number, end: number): string {
    try {
      return utf8.decode(this.#bytes.subarray(start, end))
    } catch {
      throw this.#error('a string is not UTF-8')
    }
  }

  /** Reads a string with escapes; the position is at the first one. */
  #escaped(start: number): string {
    let text = this.#decoded(start, this.#at)
    for (;;) {
      const character = this.#text[this.#at]
      if (character === '"') {
        this.#at++
        return text
      }
      if (character === '\\') {
        text += this.#escape()
        continue
      }
      const from = this.#at
      while (isPlain(this.#text.charCodeAt(this.#at))) this.#at++
      if (this.#at === from)
        throw this.#error(character === undefined ? 'an unterminated string' : 'a control character')
      text += this.#decoded(from, this.#at)
    }
  }

  #escape(): string {
    const character = this.#text[this.#at + 1] ?? ''
    this.#at += 2
    if ('"\\/'.includes(character) && character !== '') return character
    const plain = escapes[character]
    if (plain !== undefined) return plain
    const digits = this.#text.slice(this.#at, this.#at + 4)
    if (character !== 'u' || !/^[0-9a-fA-F]{4}$/.test(digits)) throw this.#error('a bad escape')
    this.#at += 4
    return String.fromCharCode(Number.parseInt(digits, 16))
  }

  #blanks(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return
      this.#at++
    }
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false
    this.#at++
    return true
  }

  #expect(character: string): void {
    if (!this.#take(character)) throw this.#error(`expected ${character}`)
  }

  #word(word: string): void {
    if (!this.#text.startsWith(word, this.#at)) throw this.#error('no value')
    this.#at += word.length
  }

  #error(problem: string): BadRecordError {
    return new BadRecordError(`invalid JSON: ${problem} [offset=${this.#at}]`)
  }
}

/** Whether the character needs no escape in a string; false at the end. */
function isPlain(code: number): boolean {
  return code >= 32 && code !== 34 && code !== 92
}

function kindOf(first: string): string {
  if (first === '"') return 'strings'
  if (first === '{') return 'objects'
  return first === 'n' ? 'nulls' : 'other values'
}

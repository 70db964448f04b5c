// Parses .proto files, the text in which schema registries store Protobuf schemas: proto2, proto3 and editions. Returns
// the definitions that decoding a message needs. Services, extensions, reserved numbers, and options that do not change
// how a field is decoded, are skipped. The tokeniser at the end splits the text into words, numbers, strings and
// symbols.
//
//   file    = { "syntax" "=" string ";" | "package" name ";" | "import" .. ";" | message | enum | .. }
//   message = "message" name "{" { field | map | group | oneof | message | enum | .. } "}"
//   field   = [ "optional" | "required" | "repeated" ] type name "=" number [ "[" options "]" ] ";"

export interface ProtoFile {
  readonly package: string
  readonly messages: readonly ProtoMessage[]
  readonly enums: readonly ProtoEnum[]
}

export interface ProtoMessage {
  readonly name: string
  readonly fields: ProtoField[]
  /** In the order of the text, without those of groups, as message indexes count them. */
  readonly messages: ProtoMessage[]
  /** Messages that groups declare. */
  readonly groups: ProtoMessage[]
  readonly enums: ProtoEnum[]
}

export interface ProtoField {
  readonly name: string
  readonly number: number
  /** As it is written; of a map, the type of its values. */
  readonly type: string
  /** Type of a map's keys; null: no map. */
  readonly keyType: string | null
  readonly repeated: boolean
  /** Absent is another thing than the default value. */
  readonly presence: boolean
  /** Of the fields with the same name, only the last one in a message counts; empty: none. */
  readonly oneof: string
  /** Encoded between a start and an end tag, without a length. */
  readonly group: boolean
}

interface ProtoEnum {
  readonly name: string
  readonly values: ReadonlyMap<number, string>
}

/** What `features` say, in scope of a file, a message or a field. */
interface Features {
  readonly implicit: boolean
  readonly delimited: boolean
}

const depthMax = 64

/** Throws ProtoError. */
export function parseProto(text: string): ProtoFile {
  return new Parser(protoTokens(text)).file()
}

class Parser {
  readonly #tokens: readonly ProtoToken[]
  #at = 0
  #depth = 0

  constructor(tokens: readonly ProtoToken[]) {
    this.#tokens = tokens
  }

  file(): ProtoFile {
    let name = ''
    let features: Features = { implicit: false, delimited: false }
    const messages: ProtoMessage[] = []
    const enums: ProtoEnum[] = []
    while (this.#at < this.#tokens.length) {
      this.#take('export') || this.#take('local')
      if (this.#take('syntax')) features = { ...features, implicit: this.#assigned() === 'proto3' }
      else if (this.#take('package')) name = this.#statementName()
      else if (this.#take('option')) features = changed(features, this.#untilSemicolon())
      else if (this.#take('message')) messages.push(this.#message(features))
      else if (this.#take('enum')) enums.push(this.#enumeration())
      else if (this.#take('service') || this.#take('extend')) this.#skipBlock()
      else if (this.#take('import') || this.#take('edition')) this.#untilSemicolon()
      else if (!this.#take(';')) throw this.#unexpected()
    }
    return { package: name, messages, enums }
  }

  #message(features: Features): ProtoMessage {
    return this.#body(this.#word(), features)
  }

  #body(name: string, outer: Features): ProtoMessage {
    const message: ProtoMessage = { name, fields: [], messages: [], groups: [], enums: [] }
    if (++this.#depth > depthMax) throw new ProtoError('messages are nested too deeply', this.#line())
    this.#expect('{')
    let features = outer
    while (!this.#take('}')) {
      if (this.#begins('option')) features = changed(features, this.#untilSemicolon())
      else this.#member(message, features)
    }
    this.#depth--
    return message
  }

  #member(message: ProtoMessage, features: Features): void {
    this.#begins('export') || this.#begins('local')
    if (this.#begins('message')) message.messages.push(this.#message(features))
    else if (this.#begins('enum')) message.enums.push(this.#enumeration())
    else if (this.#begins('oneof')) this.#oneof(message, features)
    else if (this.#begins('extend')) this.#skipBlock()
    else if (this.#begins('reserved') || this.#begins('extensions')) this.#untilSemicolon()
    else if (this.#peek(0)?.text === 'map' && this.#peek(1)?.text === '<') this.#map(message, features)
    else if (!this.#take(';')) this.#field(message, features, '')
  }

  /** Takes a keyword; not a type's name, as in `option.Kind kind = 1`, nor a field's, which is behind its type. */
  #begins(keyword: string): boolean {
    return this.#tokens[this.#at + 1]?.text !== '.' && this.#take(keyword)
  }

  #oneof(message: ProtoMessage, features: Features): void {
    const name = this.#word()
    this.#expect('{')
    while (!this.#take('}')) {
      if (this.#begins('option')) this.#untilSemicolon()
      else if (!this.#take(';')) this.#field(message, features, name)
    }
  }

  #field(message: ProtoMessage, features: Features, oneof: string): void {
    const label = oneof === '' ? this.#label() : ''
    const group = this.#peek(2)?.text === '=' && this.#take('group')
    const type = group ? this.#word() : this.#name()
    const name = group ? type.toLowerCase() : this.#word()
    this.#expect('=')
    const number = this.#number()
    const own = this.#options(features)
    if (group) message.groups.push(this.#body(type, features))
    else this.#expect(';')
    message.fields.push({
      ...{ name, number, type, keyType: null, repeated: label === 'repeated', oneof, group: group || own.delimited },
      presence: oneof !== '' || label === 'optional' || label === 'required' || !own.implicit,
    })
  }

  #label(): string {
    for (const label of ['optional', 'required', 'repeated']) if (this.#begins(label)) return label
    return ''
  }

  #map(message: ProtoMessage, features: Features): void {
    this.#at += 2
    const keyType = this.#name()
    this.#expect(',')
    const type = this.#name()
    this.#expect('>')
    const name = this.#word()
    this.#expect('=')
    const number = this.#number()
    this.#options(features)
    this.#expect(';')
    message.fields.push({
      ...{ name, number, type, keyType, repeated: true },
      presence: false,
      oneof: '',
      group: false,
    })
  }

  /** Options in brackets. */
  #options(features: Features): Features {
    if (!this.#take('[')) return features
    const start = this.#at
    for (let depth = 1; depth > 0; this.#at++) {
      const token = this.#peek(0)
      if (token === undefined) throw this.#unexpected()
      if (token.kind === 'symbol' && (token.text === '[' || token.text === '{')) depth++
      if (token.kind === 'symbol' && (token.text === ']' || token.text === '}')) depth--
    }
    return changed(features, this.#tokens.slice(start, this.#at))
  }

  #enumeration(): ProtoEnum {
    const name = this.#word()
    const values = new Map<number, string>()
    this.#expect('{')
    while (!this.#take('}')) {
      if (this.#take(';')) continue
      if (this.#begins('option') || this.#begins('reserved')) {
        this.#untilSemicolon()
        continue
      }
      const value = this.#word()
      this.#expect('=')
      const number = this.#number()
      // With `allow_alias`, the first name is the one that is written.
      if (!values.has(number)) values.set(number, value)
      this.#options({ implicit: false, delimited: false })
      this.#expect(';')
    }
    return { name, values }
  }

  /** Name of a service or an extended message, and the block behind it. */
  #skipBlock(): void {
    while (!this.#take('{')) {
      if (this.#peek(0) === undefined) throw this.#unexpected('{')
      this.#at++
    }
    for (let depth = 1; depth > 0; this.#at++) {
      const token = this.#peek(0)
      if (token === undefined) throw this.#unexpected()
      if (token.kind === 'symbol' && token.text === '{') depth++
      if (token.kind === 'symbol' && token.text === '}') depth--
    }
  }

  /** The tokens of the statement; blocks within it may contain semicolons. */
  #untilSemicolon(): readonly ProtoToken[] {
    const start = this.#at
    let depth = 0
    for (; ; this.#at++) {
      const token = this.#peek(0)
      if (token === undefined) throw this.#unexpected()
      if (token.kind !== 'symbol') continue
      if (token.text === '{') depth++
      if (token.text === '}') depth--
      if (token.text === ';' && depth === 0) break
    }
    return this.#tokens.slice(start, this.#at++)
  }

  #assigned(): string {
    this.#expect('=')
    const text = this.#peek(0)?.text ?? ''
    this.#at++
    this.#expect(';')
    return text
  }

  #statementName(): string {
    const name = this.#name()
    this.#expect(';')
    return name
  }

  /** `a.b.c`, with a dot in front when it is absolute. */
  #name(): string {
    let name = this.#take('.') ? '.' : ''
    name += this.#word()
    while (this.#take('.')) name += `.${this.#word()}`
    return name
  }

  #word(): string {
    const token = this.#peek(0)
    if (token?.kind !== 'word') throw this.#unexpected()
    this.#at++
    return token.text
  }

  #number(): number {
    const isNegative = this.#take('-')
    const token = this.#peek(0)
    const value = token?.kind === 'number' ? integerOf(token.text) : Number.NaN
    if (!Number.isInteger(value)) throw this.#unexpected()
    this.#at++
    return isNegative ? -value : value
  }

  #take(text: string): boolean {
    const token = this.#peek(0)
    if (token === undefined || token.kind === 'string' || token.text !== text) return false
    this.#at++
    return true
  }

  #expect(text: string): void {
    if (!this.#take(text)) throw this.#unexpected(text)
  }

  #peek(ahead: number): ProtoToken | undefined {
    return this.#tokens[this.#at + ahead]
  }

  #line(): number {
    return (this.#peek(0) ?? this.#tokens.at(-1))?.line ?? 1
  }

  #unexpected(expected = ''): ProtoError {
    const found = this.#peek(0)
    const what = found === undefined ? 'unexpected end' : `unexpected '${found.text}'`
    return new ProtoError(expected === '' ? what : `${what}, expected '${expected}'`, this.#line())
  }
}

/** Octal, decimal or hexadecimal. */
function integerOf(text: string): number {
  return /^0[0-7]+$/.test(text) ? Number.parseInt(text, 8) : Number(text)
}

/** `tokens` of an option; also of `features = { field_presence: IMPLICIT }`. */
function changed(features: Features, tokens: readonly ProtoToken[]): Features {
  const settingOf = (name: string): string => {
    const index = tokens.findIndex(({ kind, text }) => kind === 'word' && text === name)
    return index < 0 ? '' : (tokens[index + 2]?.text ?? '')
  }
  const presence = settingOf('field_presence')
  const encoding = settingOf('message_encoding')
  return {
    implicit: presence === '' ? features.implicit : presence === 'IMPLICIT',
    delimited: encoding === '' ? features.delimited : encoding === 'DELIMITED',
  }
}

interface ProtoToken {
  readonly kind: 'word' | 'number' | 'string' | 'symbol'
  /** Of a string, what is between the quotes, with its escapes. */
  readonly text: string
  readonly line: number
}

class ProtoError extends Error {
  constructor(message: string, line: number) {
    super(`${message} [line=${line}]`)
    this.name = 'ProtoError'
  }
}

const blanks = /(?:[\s\ufeff]+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)+/y
const word = /[A-Za-z_][A-Za-z0-9_]*/y
/** One that begins with a dot is two tokens: only options, which are skipped, have such a number. */
const number = /0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?/y
const string = /"((?:[^"\\\n]|\\[\s\S])*)"|'((?:[^'\\\n]|\\[\s\S])*)'/y
const symbol = /[{}[\]()<>=;,.:+\-/]/y
const textMax = 4 * 1024 * 1024

/** Throws ProtoError. */
function protoTokens(text: string): readonly ProtoToken[] {
  if (text.length > textMax) throw new ProtoError('the text is too long', 1)
  const tokens: ProtoToken[] = []
  let line = 1
  let at = skip(text, 0)
  line += lines(text, 0, at)
  while (at < text.length) {
    const token = tokenAt(text, at, line)
    if (token === null) throw new ProtoError(`unexpected character '${text[at]}'`, line)
    tokens.push(token.token)
    const next = skip(text, token.end)
    line += lines(text, at, next)
    at = next
  }
  return tokens
}

function tokenAt(text: string, at: number, line: number): { readonly token: ProtoToken; readonly end: number } | null {
  const forms = [
    ['word', word],
    ['number', number],
    ['string', string],
    ['symbol', symbol],
  ] as const
  for (const [kind, pattern] of forms) {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match !== null)
      return { token: { kind, text: match[1] ?? match[2] ?? match[0], line }, end: at + match[0].length }
  }
  return null
}

function skip(text: string, at: number): number {
  blanks.lastIndex = at
  return blanks.test(text) ? blanks.lastIndex : at
}

function lines(text: string, from: number, to: number): number {
  let count = 0
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) count++
  return count
}

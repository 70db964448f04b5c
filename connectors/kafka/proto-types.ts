// Resolves the type names in parsed .proto files (Protobuf schemas), and builds from them the message types by which
// records are decoded: the fields by number, each with its type. Types that come with the Protobuf compiler, such as
// google.protobuf.Timestamp, are defined here, because schema registries do not store them.

import { type ProtoField, type ProtoFile, type ProtoMessage, parseProto } from './proto-text.js'

const scalars = [
  ...['double', 'float', 'int32', 'int64', 'uint32', 'uint64', 'sint32', 'sint64'],
  ...['fixed32', 'fixed64', 'sfixed32', 'sfixed64', 'bool', 'string', 'bytes'],
] as const
export type Scalar = (typeof scalars)[number]

export interface MessageType {
  /** With its package. */
  readonly name: string
  /** In the order of the text. */
  readonly fields: readonly FieldType[]
  readonly byNumber: ReadonlyMap<number, FieldType>
}

export interface FieldType {
  /** Place in `MessageType.fields`. */
  readonly index: number
  readonly name: string
  readonly value: ValueType
  readonly repeated: boolean
  /** Type of a map's keys; null: no map. */
  readonly key: Scalar | null
  /** Absent is NULL; otherwise it is the default value of the type. */
  readonly presence: boolean
  /** The other fields of its oneof, which it replaces. */
  readonly rivals: readonly number[]
  readonly group: boolean
}

export type ValueType =
  | { readonly kind: 'scalar'; readonly scalar: Scalar }
  | { readonly kind: 'enum'; readonly names: ReadonlyMap<number, string> }
  | { readonly kind: 'message'; readonly message: MessageType }

/** Messages of the requested schema, as message indexes count them. */
export interface ProtoSchema {
  readonly messages: readonly NestedMessage[]
}

interface NestedMessage {
  readonly type: MessageType
  readonly messages: readonly NestedMessage[]
}

const wrapper = (name: string, type: string): string => `message ${name}Value { ${type} value = 1; }`

/** What files may import without a reference. */
const knownFiles = [
  `syntax = "proto3"; package google.protobuf;
  message Timestamp { int64 seconds = 1; int32 nanos = 2; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message Empty {}
  message Any { string type_url = 1; bytes value = 2; }
  message FieldMask { repeated string paths = 1; }
  message Struct { map<string, Value> fields = 1; }
  message ListValue { repeated Value values = 1; }
  enum NullValue { NULL_VALUE = 0; }
  message Value {
    oneof kind {
      NullValue null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4;
      Struct struct_value = 5; ListValue list_value = 6;
    }
  }
  ${wrapper('Double', 'double')} ${wrapper('Float', 'float')} ${wrapper('Int64', 'int64')} ${wrapper('UInt64', 'uint64')}
  ${wrapper('Int32', 'int32')} ${wrapper('UInt32', 'uint32')} ${wrapper('Bool', 'bool')} ${wrapper('String', 'string')}
  ${wrapper('Bytes', 'bytes')}`,
  `syntax = "proto3"; package google.type;
  message Date { int32 year = 1; int32 month = 2; int32 day = 3; }
  message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }
  message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }
  message LatLng { double latitude = 1; double longitude = 2; }
  message Decimal { string value = 1; }`,
  `syntax = "proto3"; package confluent.type;
  message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }`,
]

/** Throws Error. `texts`: the requested schema is the last one. */
export function protoSchema(texts: readonly string[]): ProtoSchema {
  const files = texts.map(parseProto)
  const [requested] = files.slice(-1)
  if (requested === undefined) throw new Error('there is no schema')
  return new Names([...files, ...knownFiles.map(parseProto)]).schemaOf(requested)
}

interface Declared {
  readonly message: ProtoMessage
  readonly name: string
  /** Is filled when it is asked for first, so that a message can contain itself. */
  type: MessageType | null
}

class Names {
  readonly #messages = new Map<string, Declared>()
  readonly #enums = new Map<string, ReadonlyMap<number, string>>()

  constructor(files: readonly ProtoFile[]) {
    for (const file of files) {
      for (const message of file.messages) this.#declare(message, file.package)
      for (const { name, values } of file.enums) this.#enums.set(joined(file.package, name), values)
    }
  }

  schemaOf(file: ProtoFile): ProtoSchema {
    const nested = (message: ProtoMessage, scope: string): NestedMessage => {
      const name = joined(scope, message.name)
      return { type: this.#message(name), messages: message.messages.map((inner) => nested(inner, name)) }
    }
    return { messages: file.messages.map((message) => nested(message, file.package)) }
  }

  #declare(message: ProtoMessage, scope: string): void {
    const name = joined(scope, message.name)
    this.#messages.set(name, { message, name, type: null })
    for (const { name: inner, values } of message.enums) this.#enums.set(joined(name, inner), values)
    for (const inner of [...message.messages, ...message.groups]) this.#declare(inner, name)
  }

  #message(name: string): MessageType {
    const declared = this.#messages.get(name)
    if (declared === undefined) throw new Error(`the message is missing [name=${name}]`)
    if (declared.type !== null) return declared.type
    const fields: FieldType[] = []
    const byNumber = new Map<number, FieldType>()
    const type: MessageType = { name, fields, byNumber }
    declared.type = type
    for (const [index, field] of declared.message.fields.entries()) {
      const made = this.#field(field, index, declared)
      fields.push(made)
      byNumber.set(field.number, made)
    }
    return type
  }

  #field(field: ProtoField, index: number, { message, name }: Declared): FieldType {
    const value = this.#value(field.type, name)
    const key = field.keyType === null ? null : scalarOf(field.keyType)
    if (field.keyType !== null && key === undefined) throw new Error(`invalid type of keys [type=${field.keyType}]`)
    const rivals: number[] = []
    for (const [other, { oneof }] of message.fields.entries())
      if (field.oneof !== '' && oneof === field.oneof && other !== index) rivals.push(other)
    return {
      ...{ index, name: field.name, value, repeated: field.repeated, key: key ?? null, rivals },
      presence: field.presence || value.kind === 'message',
      group: field.group && value.kind === 'message',
    }
  }

  #value(written: string, scope: string): ValueType {
    const scalar = scalarOf(written)
    if (scalar !== undefined) return { kind: 'scalar', scalar }
    for (const name of candidates(written, scope)) {
      const names = this.#enums.get(name)
      if (names !== undefined) return { kind: 'enum', names }
      if (this.#messages.has(name)) return { kind: 'message', message: this.#message(name) }
    }
    throw new Error(`the type is unknown, and no reference of the schema defines it [type=${written}]`)
  }
}

function scalarOf(name: string): Scalar | undefined {
  return scalars.find((scalar) => scalar === name)
}

function joined(scope: string, name: string): string {
  return scope === '' ? name : `${scope}.${name}`
}

/** The names that a written one may mean, from the innermost scope outwards. */
function* candidates(written: string, scope: string): Iterable<string> {
  if (written.startsWith('.')) {
    yield written.slice(1)
    return
  }
  for (let outer = scope; outer !== ''; outer = outer.slice(0, Math.max(0, outer.lastIndexOf('.'))))
    yield `${outer}.${written}`
  yield written
}

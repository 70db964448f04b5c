// Encodes the messages of the server, each below its grammar. Strings end with a zero byte; numbers are big-endian. A
// message consists of its type, its length (including itself, excluding the type) and its fields.

export interface FieldDescription {
  readonly name: string
  readonly oid: number
  /** Size of a value in bytes; negative for variable-length types. */
  readonly size: number
  readonly modifier: number
  readonly binary: boolean
  /** OID of the table and number of the column; 0 for a computed column. */
  readonly relation: number
  readonly attribute: number
}

/** 'I' idle, 'T' in a transaction, 'E' in a failed transaction. */
export type TransactionStatus = 'I' | 'T' | 'E'

/** Fields by their codes: S and V severity, C SQLSTATE, M message, D detail, H hint, P position from 1. */
export interface NoticeFields {
  readonly severity: 'ERROR' | 'FATAL' | 'WARNING' | 'NOTICE'
  readonly code: string
  readonly message: string
  /** From 1; 0: unknown. */
  readonly position: number
  readonly hint?: string
  readonly routine?: string | undefined
}

const headerBytes = 5

function message(type: string, body: number, write: (buffer: Buffer, at: number) => void): Buffer {
  const buffer = Buffer.allocUnsafe(headerBytes + body)
  buffer.write(type, 0, 'latin1')
  buffer.writeInt32BE(body + 4, 1)
  write(buffer, headerBytes)
  return buffer
}

function textMessage(type: string, ...strings: readonly string[]): Buffer {
  const body = Buffer.from(strings.map((text) => `${text}\0`).join(''), 'utf8')
  return message(type, body.length, (buffer, at) => void body.copy(buffer, at))
}

const authentications = { ok: 0, cleartext: 3, md5: 5, sasl: 10, saslContinue: 11, saslFinal: 12 } as const

/** Authentication => 'R' length kind:int32 (salt or SASL data) */
export function authentication(kind: keyof typeof authentications, data: Uint8Array = new Uint8Array(0)): Buffer {
  return message('R', 4 + data.length, (buffer, at) => {
    buffer.writeInt32BE(authentications[kind], at)
    buffer.set(data, at + 4)
  })
}

/** ParameterStatus => 'S' length name value */
export function parameterStatus(name: string, value: string): Buffer {
  return textMessage('S', name, value)
}

/** NotificationResponse => 'A' length process:int32 channel payload */
export function notificationResponse(process: number, channel: string, payload: string): Buffer {
  const strings = Buffer.from(`${channel}\0${payload}\0`, 'utf8')
  return message('A', 4 + strings.length, (buffer, at) => {
    buffer.writeInt32BE(process, at)
    strings.copy(buffer, at + 4)
  })
}

/** BackendKeyData => 'K' length process:int32 secret:int32 */
export function backendKeyData(process: number, secret: number): Buffer {
  return message('K', 8, (buffer, at) => {
    buffer.writeInt32BE(process, at)
    buffer.writeInt32BE(secret, at + 4)
  })
}

/** NegotiateProtocolVersion => 'v' length minor:int32 count:int32 option* */
export function negotiateProtocolVersion(minor: number, options: readonly string[]): Buffer {
  const names = Buffer.from(options.map((name) => `${name}\0`).join(''), 'utf8')
  return message('v', 8 + names.length, (buffer, at) => {
    buffer.writeInt32BE(minor, at)
    buffer.writeInt32BE(options.length, at + 4)
    names.copy(buffer, at + 8)
  })
}

/** ReadyForQuery => 'Z' length status:byte */
export function readyForQuery(status: TransactionStatus): Buffer {
  return readies[status]
}

const readyIn = (status: TransactionStatus): Buffer =>
  message('Z', 1, (buffer, at) => void buffer.write(status, at, 'latin1'))
const readies = { I: readyIn('I'), T: readyIn('T'), E: readyIn('E') } as const

/** CommandComplete => 'C' length tag */
export function commandComplete(tag: string): Buffer {
  const known = completions.get(tag)
  if (known !== undefined) return known
  const made = textMessage('C', tag)
  if (completions.size < completionsMax) completions.set(tag, made)
  return made
}

/** Caches messages of the few tags that small results share. */
const completions = new Map<string, Buffer>()
const completionsMax = 256

const empty = (type: string): Buffer => message(type, 0, () => {})

export const parseComplete = empty('1')
export const bindComplete = empty('2')
export const closeComplete = empty('3')
export const noData = empty('n')
export const emptyQueryResponse = empty('I')
export const portalSuspended = empty('s')
export const copyDone = empty('c')

/** ParameterDescription => 't' length count:int16 oid:int32* */
export function parameterDescription(oids: readonly number[]): Buffer {
  return message('t', 2 + oids.length * 4, (buffer, start) => {
    let at = buffer.writeUInt16BE(oids.length, start)
    for (const oid of oids) at = buffer.writeInt32BE(oid, at)
  })
}

/** RowDescription => 'T' length count:int16 (name table:int32 column:int16 oid:int32 size:int16 modifier:int32 format:int16)* */
export function rowDescription(fields: readonly FieldDescription[]): Buffer {
  const names = fields.map(({ name }) => Buffer.from(`${name}\0`, 'utf8'))
  const body = names.reduce((sum, name) => sum + name.length + 18, 2)
  return message('T', body, (buffer, start) => {
    let at = buffer.writeUInt16BE(fields.length, start)
    for (const [index, field] of fields.entries()) {
      const name = names[index] as Buffer
      at += name.copy(buffer, at)
      at = buffer.writeInt32BE(field.relation, at)
      at = buffer.writeInt16BE(field.attribute, at)
      at = buffer.writeInt32BE(field.oid, at)
      at = buffer.writeInt16BE(field.size, at)
      at = buffer.writeInt32BE(field.modifier, at)
      at = buffer.writeInt16BE(field.binary ? 1 : 0, at)
    }
  })
}

/** ErrorResponse => 'E' length (field:byte text)* 0 */
export function errorResponse(fields: NoticeFields): Buffer {
  return noticeMessage('E', fields)
}

/** NoticeResponse => 'N' length (field:byte text)* 0 */
export function noticeResponse(fields: NoticeFields): Buffer {
  return noticeMessage('N', fields)
}

function noticeMessage(type: string, { severity, code, message, position, hint, routine }: NoticeFields): Buffer {
  const strings = [`S${severity}`, `V${severity}`, `C${code}`, `M${message.replaceAll('\0', '')}`]
  if (hint !== undefined) strings.push(`H${hint}`)
  if (position > 0) strings.push(`P${position}`)
  if (routine !== undefined) strings.push(`R${routine}`)
  return textMessage(type, ...strings, '')
}

/** CopyInResponse => 'G', CopyOutResponse => 'H': length format:byte count:int16 format:int16* */
export function copyResponse(direction: 'in' | 'out', binary: boolean, columns: number): Buffer {
  return message(direction === 'in' ? 'G' : 'H', 3 + columns * 2, (buffer, start) => {
    let at = buffer.writeInt8(binary ? 1 : 0, start)
    at = buffer.writeInt16BE(columns, at)
    for (let column = 0; column < columns; column++) at = buffer.writeInt16BE(binary ? 1 : 0, at)
  })
}

/** CopyData => 'd' length bytes */
export function copyData(bytes: Uint8Array): Buffer {
  return message('d', bytes.length, (buffer, at) => void buffer.set(bytes, at))
}

// Support for tests of Kafka records with schemas: a fake schema registry, an HTTP server that returns the given
// schemas like Confluent's; and a function that reads records with it and returns their lines of line protocol.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { MappingOptions } from '../../../connectors/kafka/options.js'
import { RecordReader } from '../../../connectors/kafka/record-reader.js'
import { schemaRegistry } from '../../../connectors/kafka/schema-registry.js'
import { mapping, record, textOf } from './kafka-support.js'

export interface Registered {
  readonly schema: string
  readonly schemaType?: string
  readonly references?: readonly { readonly name: string; readonly subject: string; readonly version: number }[]
}

export interface TestRegistry {
  readonly url: string
  readonly requested: string[]
  close(): void
}

/** `answers` by path: `/schemas/ids/1`, `/subjects/place/versions/1`. */
export async function startRegistry(answers: Readonly<Record<string, Registered>>): Promise<TestRegistry> {
  const requested: string[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    requested.push(path)
    const answer = answers[path]
    response.statusCode = answer === undefined ? 404 : 200
    response.end(JSON.stringify(answer ?? { error_code: 40403 }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, requested, close: () => server.close() }
}

/** The value with the schema's id in front. */
export function registered(id: number, value: string | Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([0, 0, 0, 0, id]), Buffer.from(value as string)])
}

/**
 * Reads values as records of the topic `t`; returns their lines (`text` if they may hold arrays), and why some are bad.
 */
export async function readValues(
  registry: TestRegistry,
  values: readonly Buffer[],
  changes: Partial<MappingOptions>,
): Promise<{ readonly text: string; readonly lines: readonly string[]; readonly bad: readonly string[] }> {
  const reader = new RecordReader(mapping(changes), schemaRegistry({ url: registry.url, credentials: '' }))
  const records = values.map((value) => record(value))
  await reader.prepare(records)
  const { lines, bad } = reader.read({ topic: 't', partition: 0 }, records, 0, new Set())
  const text = textOf(lines)
  return { text, lines: text.split('\n').slice(0, -1), bad: [...bad.values()] }
}

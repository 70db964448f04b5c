// The baseline for cold scans in suite-lake.ts: reads object storage without the server, as a separate process. Lists
// the objects below a prefix and prints `ready`. Then reads them in byte ranges of a given size, with a given number of
// concurrent requests, discards the bytes, and prints seconds and bytes as JSON.

import { type ObjectStoreOptions, openStore } from '../../engine/object-store/open-store.js'

export interface ReaderOptions {
  readonly store: ObjectStoreOptions
  readonly prefix: string
  readonly rangeBytes: number
  readonly atOnce: number
}

export interface ReaderReport {
  readonly seconds: number
  readonly bytes: number
}

const options = JSON.parse(process.argv[2] ?? '') as ReaderOptions
const store = openStore(options.store)
const ranges: { readonly key: string; readonly offset: number; readonly bytes: number }[] = []
for await (const object of store.list(options.prefix)) {
  for (let offset = 0; offset < object.bytes; offset += options.rangeBytes)
    ranges.push({ key: object.key, offset, bytes: Math.min(options.rangeBytes, object.bytes - offset) })
}
process.stdout.write('ready\n')
const begun = performance.now()
let bytes = 0
let next = 0
await Promise.all(
  Array.from({ length: options.atOnce }, async () => {
    for (let range = ranges[next++]; range !== undefined; range = ranges[next++]) {
      const content = await store.get(range.key, range)
      bytes += content.length
    }
  }),
)
const report: ReaderReport = { seconds: (performance.now() - begun) / 1000, bytes }
process.stdout.write(`${JSON.stringify(report)}\n`)
await store.close()

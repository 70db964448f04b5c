// Goal: the committed WebAssembly is compiled from the committed AssemblyScript. Hashes are compared, so the test does
// not need the compiler; CI also runs `npm run kernels` and requires an empty diff.

import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

interface BuildScript {
  readonly modules: readonly string[]
  sourceHash(name: string): string
}

const root = new URL('../../../engine/kernels/', import.meta.url)
const build = (await import(new URL('as/build.mjs', root).href)) as BuildScript

describe('generated kernels', () => {
  test.each(build.modules.map((name) => [name]))('%s is built from the present source', (name) => {
    const header = readFileSync(new URL(`generated/${name}.ts`, root), 'utf8').slice(0, 400)
    expect(header).toContain(`source sha256: ${build.sourceHash(name)}`)
    expect(header).toMatch(/compiler: assemblyscript \d+\.\d+\.\d+/)
  })
})

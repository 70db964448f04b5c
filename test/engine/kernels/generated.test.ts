// Goal: committed WebAssembly is what the committed AssemblyScript compiles to. Comparing hashes instead of compiling
// keeps the test free of the compiler; `npm run kernels` and a clean diff prove the rest.

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

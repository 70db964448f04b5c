// Goal: the source tree follows the rules of the repository, such as: which folders exist and which may import which,
// one entry file in each layer for imports from other layers, one adapter file for each npm package, sizes of files and
// functions, header comments, no cyclic imports, and no paths or names that exist on one machine only.
//
// The list `exceptions` may only shrink: the test also fails if an entry is no longer needed.

import { posix } from 'node:path'
import { describe, expect, test } from 'vitest'
import { filesBelow, parseSource, readText, type SourceFile, topLevelNames } from './support/docs/source-tree.js'

/** `rule path`: what does not hold yet. */
const exceptions: readonly string[] = ['reexport engine/sql/ast/ast.ts', 'reexport engine/storage/manifest/manifest.ts']

const layers = ['engine', 'pipeline', 'gateways', 'connectors', 'deploy'] as const
type Layer = (typeof layers)[number]

const topLevel = new Set([
  ...['package.json', 'tsconfig.json', ...layers, 'test', 'docs', '.ci'],
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'LICENSE'],
  ...['package-lock.json', 'biome.json', 'vitest.config.ts', '.gitignore', '.npmrc'],
])

/** Which layers a layer may import, itself included. */
const mayImport: Record<Layer, readonly Layer[]> = {
  engine: ['engine'],
  pipeline: ['pipeline', 'engine'],
  gateways: ['gateways', 'pipeline', 'engine'],
  connectors: ['connectors', 'pipeline', 'engine'],
  deploy: layers,
}

/**
 * How outsiders enter a layer; others may name types only, and the engine's vocabulary (base, types of columns and
 * values, timestamps).
 */
const entryPoints: Record<Layer, RegExp> = {
  engine:
    /^engine\/(engine\.ts|records\.ts|threads\/launch\.ts|base\/.*|types\/(column-types|value|timestamp|timestamp-pattern)\.ts)$/,
  pipeline: /^pipeline\/(ingest|export)\.ts$/,
  gateways: /^gateways\/(common\/[^/]+|[^/]+\/server)\.ts$/,
  connectors: /^connectors\/[^/]+\/[^/]+\.ts$/,
  deploy: /^deploy\/embedded\/index\.ts$/,
}

/** Where files are as recursive as their subject: an expression holds a query, which holds expressions. */
const recursive = /^engine\/(sql\/(ast|parse|bind)\/|exec\/expression\/|kernels\/jit\/lane)/

const fileLinesMax = 500
const kernelFileLinesMax = 800
const functionLinesMax = 70
const kernelFunctionLinesMax = 200
/** Below a layer: engine/sql/plan is two levels. A third one divides what would be more than `folderFilesMax` files. */
const folderLevelsMax = 2
const thirdLevel = /^engine\/(sql\/functions|kernels\/as)\/[^/]+$/
const folderFilesMax = 40

/** How often a layer says `as`, which hides more than it says: these numbers may only fall. */
const castsMax: Record<Layer, number> = { engine: 801, pipeline: 22, gateways: 35, connectors: 45, deploy: 19 }

/**
 * Small modules that one other module imports, of the same folder: a module is an idea, not what another one had too much
 * of. The number may only fall.
 */
const smallLinesMax = 80
const smallModulesMax = 55

/** Folders whose code guards invariants by at least so many assertions in a thousand lines. */
const assertedFolders = ['storage', 'wal', 'memory', 'pg', 'csv', 'lines', 'kernels'].map((name) => `engine/${name}`)
const assertionsPerThousandLines = 10
/** Define assertions and their error. */
const assertionSources = /^engine\/base\/(assert|errors)\.ts$/

const kernelSources = /^engine\/kernels\/as\//
/** Kernels and their reference implementations. */
const kernelCode = /^(engine\/kernels|test\/reference)\//
const generated = /^engine\/kernels\/generated\//

const codePaths = [...layers, 'test']
  .flatMap((folder) => filesBelow(folder))
  .filter((path) => /\.(ts|js)$/.test(path) && !generated.test(path))
const sources = codePaths.map((path) => parseSource(path))
const moduleSources = sources.filter(({ path }) => !kernelSources.test(path))

/** Compares what a rule found with the exceptions for it, in both directions. */
function expectClean(rule: string, found: readonly { path: string; text: string }[]): void {
  const listed = exceptions.filter((entry) => entry.startsWith(`${rule} `)).map((entry) => entry.slice(rule.length + 1))
  const surprising = found.filter(({ path }) => !listed.includes(path)).map(({ text }) => text)
  const obsolete = listed.filter((path) => !found.some((finding) => finding.path === path))
  const message = [
    ...surprising.map((text) => `[${rule}] ${text}`),
    ...obsolete.map((path) => `[${rule}] ${path} is in order now: take it off the list of exceptions`),
  ].join('\n')
  expect(message, `\n${message}\n`).toBe('')
}

function layerOf(path: string): Layer | null {
  const first = path.split('/')[0]
  return layers.find((layer) => layer === first) ?? null
}

/** The imported file's path in the repository; null for packages and built-in modules. */
function targetOf(file: Pick<SourceFile, 'path'>, specifier: string): string | null {
  if (!specifier.startsWith('.')) return null
  const path = posix.join(posix.dirname(file.path), specifier)
  return path.replace(/^dist\//, '').replace(/\.js$/, '.ts')
}

function packageOf(specifier: string): string | null {
  if (specifier.startsWith('.') || specifier.startsWith('node:')) return null
  const parts = specifier.split('/')
  return parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/')
}

describe('folders', () => {
  test('the root holds only what is listed', () => {
    const found = topLevelNames().filter((name) => !topLevel.has(name))
    expectClean(
      'root',
      found.map((path) => ({ path, text: `${path} has no place in the root folder` })),
    )
  })

  test('a layer is at most two folders deep', () => {
    const folders = new Set(codePaths.filter((path) => layerOf(path) !== null).map((path) => posix.dirname(path)))
    const deep = [...folders].filter(
      (folder) => folder.split('/').length - 1 > folderLevelsMax && !thirdLevel.test(folder),
    )
    expectClean(
      'depth',
      deep.map((path) => ({ path, text: `${path} lies more than ${folderLevelsMax} folders deep` })),
    )
  })
})

test('no folder holds too many files', () => {
  const counts = new Map<string, number>()
  for (const path of codePaths) counts.set(posix.dirname(path), (counts.get(posix.dirname(path)) ?? 0) + 1)
  const full = [...counts].filter(([, files]) => files > folderFilesMax)
  expectClean(
    'folder-size',
    full.map(([path, files]) => ({ path, text: `${path} holds ${files} files: it wants folders of its own` })),
  )
})

describe('layers', () => {
  test('imports point downwards and use entry points', () => {
    expectClean(
      'layer',
      moduleSources.flatMap((file) => layerFindings(file)),
    )
  })

  test('no files import each other in a circle', () => {
    expectClean('circle', circleFindings())
  })

  test('folders import each other in one direction', () => {
    expectClean('folder-circle', folderCircleFindings())
  })

  test('the engine knows no streams and sockets, and one file knows the file system', () => {
    const forbidden = /^node:(stream|net|http|https|tls|dgram)/
    const found = moduleSources.flatMap((file) =>
      file.imports
        .filter(
          ({ specifier }) => layerOf(file.path) === 'engine' && forbiddenInEngine(file.path, specifier, forbidden),
        )
        .map(({ specifier }) => ({ path: file.path, text: `${file.path} imports ${specifier}` })),
    )
    expectClean('engine', found)
  })

  const namesProtocol = /\.protocol\b|[{,(]\s*protocol\s*[,}:]|[!=]== '(pg|http|internal)'/

  test('engine and pipeline ask the dialect of a session, not its protocol', () => {
    const found = moduleSources
      .filter(({ path }) => /^(engine|pipeline)\//.test(path) && path !== 'engine/api/session.ts')
      .filter(({ text }) => namesProtocol.test(text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')))
    expectClean(
      'protocol',
      found.map(({ path }) => ({ path, text: `${path} names a protocol: a member of Dialect says what differs` })),
    )
  })

  test('only entry points re-export', () => {
    const found = moduleSources.filter((file) => {
      const layer = layerOf(file.path)
      return layer !== null && file.imports.some(({ reexport }) => reexport) && !entryPoints[layer].test(file.path)
    })
    expectClean(
      'reexport',
      found.map(({ path }) => ({ path, text: `${path} exports what another file owns` })),
    )
  })

  test('each npm package is imported in one file of a layer', () => {
    expectClean('package', packageFindings())
  })
})

function forbiddenInEngine(path: string, specifier: string, forbidden: RegExp): boolean {
  if (/^node:fs/.test(specifier)) return path !== 'engine/base/files.ts'
  return forbidden.test(specifier)
}

function layerFindings(file: SourceFile): { path: string; text: string }[] {
  const layer = layerOf(file.path)
  if (layer === null) return []
  return file.imports.flatMap(({ specifier, typeOnly }) => {
    const target = targetOf(file, specifier)
    const targetLayer = target === null ? null : layerOf(target)
    if (target === null || targetLayer === layer) return siblingFindings(file.path, target)
    if (targetLayer === null) return [{ path: file.path, text: `${file.path} imports ${target} outside of the layers` }]
    if (!mayImport[layer].includes(targetLayer)) {
      return [{ path: file.path, text: `${file.path} imports ${target}: ${layer} must not know ${targetLayer}` }]
    }
    if (typeOnly || entryPoints[targetLayer].test(target)) return []
    return [{ path: file.path, text: `${file.path} imports ${target}, which is no entry point of ${targetLayer}` }]
  })
}

/** Files that reach themselves by their imports, those of types too; a circle is named by its first file. */
function circleFindings(): { path: string; text: string }[] {
  const imports = new Map(
    moduleSources
      .filter(({ path }) => layerOf(path) !== null)
      .map((file) => [file.path, file.imports.map(({ specifier }) => targetOf(file, specifier))]),
  )
  const reached = new Map([...imports.keys()].map((path) => [path, reachable(path, imports)]))
  const circles = new Set(
    [...reached]
      .filter(([path, targets]) => targets.has(path))
      .map(([path, targets]) =>
        [...targets]
          .filter((target) => reached.get(target)?.has(path))
          .sort()
          .join(', '),
      ),
  )
  return [...circles]
    .filter((circle) => !circle.split(', ').every((path) => recursive.test(path)))
    .map((circle) => ({ path: circle.split(', ')[0] ?? '', text: `a circle: ${circle}` }))
}

/** Folders that reach themselves by imports of values: each import that closes a circle is named. */
function folderCircleFindings(): { path: string; text: string }[] {
  const crossing = moduleSources.flatMap(({ path, imports }) =>
    imports.flatMap(({ specifier, typeOnly }) => {
      const target = targetOf({ path }, specifier)
      if (typeOnly || target === null || layerOf(path) === null || layerOf(target) === null) return []
      const [from, to] = [posix.dirname(path), posix.dirname(target)]
      return from === to ? [] : [{ path, target, from, to }]
    }),
  )
  const imports = new Map<string, string[]>()
  for (const { from, to } of crossing) {
    imports.set(from, [...(imports.get(from) ?? []), to])
    if (!imports.has(to)) imports.set(to, [])
  }
  const reached = new Map([...imports.keys()].map((folder) => [folder, reachable(folder, imports)]))
  return crossing
    .filter(({ from, to }) => reached.get(to)?.has(from) === true)
    .map(({ path, target }) => ({ path, text: `${path} imports ${target}, whose folder imports this one` }))
}

/** What is imported by a file or folder, and by what that imports. */
function reachable(path: string, imports: ReadonlyMap<string, readonly (string | null)[]>): Set<string> {
  const found = new Set<string>()
  const waiting = [path]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const target of imports.get(next) ?? []) {
      if (target === null || found.has(target) || !imports.has(target)) continue
      found.add(target)
      waiting.push(target)
    }
  }
  return found
}

/** One gateway or connector does not know the other. */
function siblingFindings(path: string, target: string | null): { path: string; text: string }[] {
  if (target === null || !/^(gateways|connectors)\//.test(path)) return []
  const own = path.split('/')[1]
  const other = target.split('/')[1]
  if (own === other || other === 'common') return []
  return [{ path, text: `${path} imports ${target} of another gateway` }]
}

function packageFindings(): { path: string; text: string }[] {
  const users = new Map<string, Set<string>>()
  for (const file of moduleSources) {
    const layer = layerOf(file.path)
    if (layer === null) continue
    for (const { specifier } of file.imports) {
      const name = packageOf(specifier)
      if (name === null) continue
      const key = `${layer}: ${name}`
      users.set(key, (users.get(key) ?? new Set()).add(file.path))
    }
  }
  return [...users]
    .filter(([, paths]) => paths.size > 1)
    .map(([key, paths]) => ({
      path: key,
      text: `${key} is imported by ${[...paths].join(', ')}: one adapter file, please`,
    }))
}

describe('files', () => {
  test('are short enough', () => {
    const found = sources.filter(
      ({ path, lines }) => lines > (kernelSources.test(path) ? kernelFileLinesMax : fileLinesMax),
    )
    expectClean(
      'file-size',
      found.map(({ path, lines }) => ({ path, text: `${path} has ${lines} lines` })),
    )
  })

  test('are ideas of their own', () => {
    const importers = new Map<string, Set<string>>()
    for (const file of moduleSources) {
      if (layerOf(file.path) === null) continue
      for (const target of file.imports.map(({ specifier }) => targetOf(file, specifier) ?? ''))
        importers.set(target, (importers.get(target) ?? new Set()).add(file.path))
    }
    const small = moduleSources
      .filter(({ path, lines }) => layerOf(path) !== null && lines <= smallLinesMax)
      .map(({ path }) => ({ path, from: [...(importers.get(path) ?? [])] }))
      .filter(
        ({ path, from: [first = '', ...more] }) => more.length === 0 && posix.dirname(first) === posix.dirname(path),
      )
    const listed = small.map(({ path, from }) => `${path} is imported by ${from.join()} only`).join('\n')
    expect(small.length, `merge small modules that are no ideas of their own:\n${listed}`).toBeLessThanOrEqual(
      smallModulesMax,
    )
  })

  test('have functions that fit on a screen', () => {
    const found = sources.flatMap((file) => {
      const limit = kernelCode.test(file.path) ? kernelFunctionLinesMax : functionLinesMax
      return file.functions
        .filter(({ lines }) => lines > limit)
        .map(({ name, line, lines }) => ({
          path: `${file.path}#${name}`,
          text: `${file.path}:${line} ${name} has ${lines} lines`,
        }))
    })
    expectClean('function-size', found)
  })

  test('begin with what they are for', () => {
    const found = sources.filter(({ text }) => !/^(#!.*\n)?(\/\/ \S|\/\*)/.test(text))
    expectClean(
      'header',
      found.map(({ path }) => ({ path, text: `${path} begins without a header comment` })),
    )
  })

  test('have no default exports, and assert with ! on elements of typed arrays only', () => {
    const defaults = sources.filter((file) => file.defaultExport)
    expectClean(
      'default-export',
      defaults.map(({ path }) => ({ path, text: `${path} has a default export` })),
    )
    const sure = moduleSources.filter(
      ({ path, nonNullAssertions }) => layerOf(path) !== null && nonNullAssertions.length > 0,
    )
    expectClean(
      'non-null',
      sure.map(({ path, nonNullAssertions }) => ({
        path,
        text: `${path}:${nonNullAssertions.join(',')} asserts with !`,
      })),
    )
  })

  test('cast no more often than they did', () => {
    for (const layer of layers) {
      const own = moduleSources.filter(({ path }) => layerOf(path) === layer)
      const casts = own.reduce((sum, file) => sum + file.casts, 0)
      expect(casts, `casts in ${layer}: lower the limit when there are fewer`).toBe(castsMax[layer])
    }
  })

  test('cite the invariant that an assertion guards', () => {
    const sections = readText('docs/invariants.md')
    const listed = [...sections.matchAll(/^- \*\*([A-Z][0-9])\*\* /gm)].map(([, id = '']) => id)
    const cited = moduleSources
      .filter(({ path }) => layerOf(path) !== null && !assertionSources.test(path))
      .flatMap(({ path, assertions }) =>
        assertions.map((message) => ({ path, message, id: message.slice(0, message.indexOf(': ')) })),
      )
    const vague = cited
      .filter(({ id }) => !listed.includes(id))
      .map(({ path, message }) => ({ path, text: `${path}: "${message}" cites no invariant` }))
    const unguarded = listed
      .filter((listedId) => !cited.some(({ id }) => id === listedId))
      .map((id) => ({ path: id, text: `nothing asserts ${id}` }))
    expectClean('assertions', [...vague, ...unguarded])
  })

  test('assert often where a mistake would cost rows', () => {
    const found = assertedFolders.flatMap((folder) => {
      // Generated code of the kernels has its own rules, and asserts nothing.
      const wrappers = folder === 'engine/kernels' ? /^engine\/kernels\/[^/]+\.ts$/ : /./
      const files = moduleSources.filter(({ path }) => path.startsWith(`${folder}/`) && wrappers.test(path))
      const lines = files.reduce((sum, file) => sum + file.lines, 0)
      const count = files.reduce((sum, { assertions }) => sum + assertions.length, 0)
      const isFew = count * 1000 < lines * assertionsPerThousandLines
      return isFew ? [{ path: folder, text: `${folder} has ${count} assertions in ${lines} lines` }] : []
    })
    expectClean('assertion-count', found)
  })

  test('import with the ending .js', () => {
    const found = moduleSources.flatMap((file) =>
      file.imports
        .filter(({ specifier }) => specifier.startsWith('.') && !/\.(js|json)$/.test(specifier))
        .map(({ specifier }) => ({ path: file.path, text: `${file.path} imports ${specifier}` })),
    )
    expectClean('ending', found)
  })

  test('know no machine and no registry', () => {
    const machine = /(?<![\w.~}*])\/(home|Users|work|root|opt)\/[\w.-]+\/|registry\.npm|"resolved": "http/
    const paths = [
      ...codePaths,
      ...filesBelow('docs'),
      ...filesBelow('.ci'),
      ...filesBelow('deploy'),
      'package.json',
      'package-lock.json',
    ]
    const found = [...new Set(paths)].filter((path) => path !== 'test/tidy.test.ts' && machine.test(readText(path)))
    expectClean(
      'machine',
      found.map((path) => ({ path, text: `${path} names a path or a host of one machine` })),
    )
  })
})

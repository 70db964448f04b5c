// Finds the root folder of the repository, and reads its files for tests such as test/tidy.test.ts: paths relative to
// the root, contents, imports and functions.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** This module is compiled to dist/test/support/docs/. */
const folders = ['../../../', '../../../../'].map((path) => fileURLToPath(new URL(path, import.meta.url)))
export const repositoryRoot = folders.find((folder) => existsSync(join(folder, 'package.json'))) ?? ''

/** Folders that tools fill; none of them is in the repository. */
const generatedFolders = new Set(['node_modules', 'dist', 'coverage', '.git', 'tmp'])

interface ImportOf {
  readonly specifier: string
  readonly typeOnly: boolean
  readonly reexport: boolean
}

interface FunctionOf {
  readonly name: string
  readonly line: number
  readonly lines: number
}

export interface SourceFile {
  /** With slashes, relative to the root. */
  readonly path: string
  readonly text: string
  readonly lines: number
  readonly imports: readonly ImportOf[]
  readonly functions: readonly FunctionOf[]
  readonly defaultExport: boolean
  /** Lines of `!` on anything but an element of an array. */
  readonly nonNullAssertions: readonly number[]
  /** How often `as` is written, `as const` aside. */
  readonly casts: number
  /** Messages of assertions, those of templates up to their first value. */
  readonly assertions: readonly string[]
}

/** Names in the root folder, generated ones left out. */
export function topLevelNames(): string[] {
  return readdirSync(repositoryRoot).filter((name) => !generatedFolders.has(name))
}

/** All files of the repository below the named folders, recursively. */
export function filesBelow(folder: string): string[] {
  const found: string[] = []
  // An empty folder is not in a clone.
  if (!existsSync(repositoryRoot + folder)) return found
  for (const entry of readdirSync(repositoryRoot + folder, { withFileTypes: true })) {
    if (generatedFolders.has(entry.name)) continue
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) found.push(...filesBelow(path))
    else found.push(path)
  }
  return found
}

export function readText(path: string): string {
  return readFileSync(repositoryRoot + path, 'utf8')
}

export function parseSource(path: string): SourceFile {
  const text = readText(path)
  const tree = ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true)
  const imports: ImportOf[] = []
  const functions: FunctionOf[] = []
  const nonNullAssertions: number[] = []
  const assertions: string[] = []
  let defaultExport = false
  let casts = 0

  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) functions.push(functionOf(node, tree))
    if (ts.isNonNullExpression(node) && !ts.isElementAccessExpression(node.expression))
      nonNullAssertions.push(lineOf(node.getStart(tree), tree))
    if (ts.isAsExpression(node) && !ts.isConstTypeReference(node.type)) casts++
    const message = messageOf(node, tree)
    if (message !== null) assertions.push(message)
    if (ts.isExportAssignment(node) || isDefault(node)) defaultExport = true
    const imported = importOf(node)
    if (imported !== null) imports.push(imported)
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return {
    path,
    text,
    lines: countLines(text),
    imports,
    functions,
    defaultExport,
    nonNullAssertions,
    casts,
    assertions,
  }
}

/** The message of assert() or of a new AssertionError; empty if it is computed, null for other nodes. */
function messageOf(node: ts.Node, tree: ts.SourceFile): string | null {
  const isCall = ts.isCallExpression(node) && node.expression.getText(tree) === 'assert'
  const isError = ts.isNewExpression(node) && node.expression.getText(tree) === 'AssertionError'
  if (!isCall && !isError) return null
  const message = node.arguments?.[isCall ? 1 : 0]
  if (message === undefined) return ''
  if (ts.isTemplateExpression(message)) return message.head.text
  return ts.isStringLiteralLike(message) ? message.text : ''
}

function countLines(text: string): number {
  const ends = text.split('\n').length
  return text.endsWith('\n') ? ends - 1 : ends
}

function lineOf(position: number, tree: ts.SourceFile): number {
  return tree.getLineAndCharacterOfPosition(position).line + 1
}

function functionOf(node: ts.SignatureDeclaration, tree: ts.SourceFile): FunctionOf {
  const first = lineOf(node.getStart(tree), tree)
  const last = lineOf(node.getEnd(), tree)
  return { name: nameOf(node, tree), line: first, lines: isSuiteCallback(node) ? 0 : last - first + 1 }
}

function nameOf(node: ts.SignatureDeclaration, tree: ts.SourceFile): string {
  if (node.name !== undefined) return node.name.getText(tree)
  const parent = node.parent
  return ts.isVariableDeclaration(parent) ? parent.name.getText(tree) : '(anonymous)'
}

/** The function given to describe() is a list of tests, no function to read at once. */
function isSuiteCallback(node: ts.Node): boolean {
  const call = node.parent
  return ts.isCallExpression(call) && /^describe\b/.test(call.expression.getText())
}

function isDefault(node: ts.Node): boolean {
  return ts.canHaveModifiers(node) && (ts.getModifiers(node) ?? []).some((m) => m.kind === ts.SyntaxKind.DefaultKeyword)
}

function importOf(node: ts.Node): ImportOf | null {
  if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
    const clause = node.importClause
    return {
      specifier: node.moduleSpecifier.text,
      typeOnly: clause?.isTypeOnly === true || onlyTypes(clause),
      reexport: false,
    }
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined && ts.isStringLiteral(node.moduleSpecifier)) {
    return { specifier: node.moduleSpecifier.text, typeOnly: node.isTypeOnly, reexport: true }
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    const [target] = node.arguments
    if (target !== undefined && ts.isStringLiteral(target)) {
      return { specifier: target.text, typeOnly: false, reexport: false }
    }
  }
  return null
}

function onlyTypes(clause: ts.ImportClause | undefined): boolean {
  const named = clause?.namedBindings
  if (clause === undefined || clause.name !== undefined || named === undefined || !ts.isNamedImports(named))
    return false
  return named.elements.length > 0 && named.elements.every((element) => element.isTypeOnly)
}

// Finds the messages of all errors that clients can see by searching the sources for `new SqlError('..')` and the other
// error classes. Expressions within a message become `<name>`. Messages that are computed before the constructor call
// are not found.

import ts from 'typescript'
import { filesBelow, readText } from './source-tree.js'

export interface ErrorText {
  readonly class: string
  readonly text: string
  /** Paths of the sources that throw it. */
  readonly files: readonly string[]
}

const classes: ReadonlySet<string> = new Set([
  ...['SqlError', 'RowError', 'ResourceError', 'AccessError', 'NetworkError', 'FileError', 'CorruptionError'],
  ...['PgError', 'StoreError', 'ImportError', 'ExecRequestError', 'BadRecordError'],
])
/** Their message is the second argument, after an SQLSTATE or a kind. */
const textIsSecond: ReadonlySet<string> = new Set(['PgError', 'StoreError'])

/** In the order of their texts. */
export function errorTexts(): ErrorText[] {
  const found = new Map<string, { class: string; text: string; files: Set<string> }>()
  for (const folder of ['engine', 'pipeline', 'gateways', 'connectors'])
    for (const path of filesBelow(folder).filter((name) => name.endsWith('.ts')))
      for (const error of errorsOf(path)) {
        const key = `${error.class} ${error.text}`
        const entry = found.get(key) ?? { ...error, files: new Set<string>() }
        entry.files.add(path)
        found.set(key, entry)
      }
  return [...found.values()]
    .map((each) => ({ ...each, files: [...each.files] }))
    .toSorted((a, b) => (a.text.toLowerCase() < b.text.toLowerCase() ? -1 : 1))
}

function errorsOf(path: string): { class: string; text: string }[] {
  const found: { class: string; text: string }[] = []
  const visit = (node: ts.Node): void => {
    const [first, second] = (ts.isNewExpression(node) ? node.arguments : undefined) ?? []
    const argument = ts.isNewExpression(node) && textIsSecond.has(node.expression.getText()) ? second : first
    if (ts.isNewExpression(node) && argument !== undefined && classes.has(node.expression.getText())) {
      const text = textOf(argument)
      if (text !== null && /\p{L}{2}/u.test(text.replace(/<[^>]*>/g, '')))
        found.push({ class: node.expression.getText(), text })
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(path, readText(path), ts.ScriptTarget.ES2023, true))
  return found
}

/** null: the text is not written here. */
function textOf(node: ts.Expression): string | null {
  if (ts.isStringLiteralLike(node)) return node.text
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map((span) => nameOf(span.expression) + span.literal.text).join('')
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
    const [left, right] = [textOf(node.left), textOf(node.right)]
    return left === null || right === null ? null : left + right
  }
  return null
}

/** The last name in an expression without calls and operators, or dots. */
function nameOf(node: ts.Expression): string {
  if (ts.isIdentifier(node)) return `<${node.text}>`
  if (ts.isPropertyAccessExpression(node)) return `<${node.name.text}>`
  return '<..>'
}

// Adapter of the package CodeMirror: the console's SQL editor, with completion, marked errors and a mark of the current
// statement. It is mounted in a shadow root, where CodeMirror adds its styles as constructed style sheets. The page's
// Content-Security-Policy permits these, but no inline styles.

import {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab, toggleComment } from '@codemirror/commands'
import { SQLDialect, sql } from '@codemirror/lang-sql'
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from '@codemirror/language'
import { lintKeymap, setDiagnostics } from '@codemirror/lint'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { EditorState, type Extension, Prec, RangeSetBuilder } from '@codemirror/state'
import {
  Decoration,
  type DecorationSet,
  drawSelection,
  EditorView,
  highlightSpecialChars,
  type KeyBinding,
  keymap,
  lineNumbers,
  placeholder,
  ViewPlugin,
  type ViewUpdate,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'
import type { Completion, Suggestion } from '../../common/sql-completion.js'
import { statementAt } from '../../common/sql-text.js'
import { keywordList } from './format-sql.js'

export interface EditorOptions {
  readonly host: HTMLElement
  readonly complete: (text: string, offset: number, asked: boolean) => Promise<Completion | null>
  readonly changed: () => void
  readonly keys: readonly { readonly key: string; readonly run: () => void }[]
}

/** The text of one tab with its history of changes. */
export type Draft = EditorState

const dialect = SQLDialect.define({
  keywords: keywordList,
  types: `boolean byte short int long float double symbol string varchar char timestamp timestamp_ns date uuid ipv4
    long256 long128 geohash binary decimal interval array`,
  caseInsensitiveIdentifiers: true,
  doubleDollarQuotedStrings: true,
  operatorChars: '*+-%<>!=&|~^/@:',
})

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: 'var(--keyword)', fontWeight: '600' },
  { tag: tags.typeName, color: 'var(--type)' },
  { tag: tags.string, color: 'var(--string)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--number)' },
  { tag: [tags.lineComment, tags.blockComment], color: 'var(--comment)', fontStyle: 'italic' },
  { tag: tags.special(tags.string), color: 'var(--text)' },
])

const theme = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'var(--panel)', color: 'var(--text)', fontSize: '13px' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-content': { padding: '8px 0', caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)', borderLeftWidth: '2px' },
  '.cm-gutters': { backgroundColor: 'var(--panel)', color: 'var(--quiet)', border: 'none' },
  '.cm-lineNumbers .cm-gutterElement': { padding: '0 10px 0 14px', minWidth: '38px' },
  '.cm-line': { padding: '0 12px 0 8px' },
  '.cm-current': { boxShadow: 'inset 2px 0 var(--accent)', backgroundColor: 'var(--current)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--selection)',
  },
  '.cm-matchingBracket': { backgroundColor: 'var(--hover)', outline: '1px solid var(--line-strong)' },
  '.cm-selectionMatch': { backgroundColor: 'var(--hover)' },
  '.cm-searchMatch': { backgroundColor: 'var(--mark)' },
  '.cm-lintRange-error, .cm-lintRange-active': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--bad) 1.5px',
    textUnderlineOffset: '3px',
  },
  '.cm-tooltip': {
    backgroundColor: 'var(--panel)',
    border: '1px solid var(--line-strong)',
    borderRadius: '6px',
    boxShadow: 'var(--shadow)',
    color: 'var(--text)',
    overflow: 'hidden',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', fontSize: '12.5px', maxHeight: '18em' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '3px 10px', display: 'flex', gap: '14px' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent)', color: 'var(--accent-text)' },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '700' },
  '.cm-completionDetail': {
    marginLeft: 'auto',
    fontStyle: 'normal',
    opacity: '0.85',
    fontSize: '11.5px',
    maxWidth: '32em',
    overflow: 'hidden',
    textOverflow: 'ellipsis',
  },
  '.cm-diagnostic': { fontFamily: 'var(--mono)', fontSize: '12.5px', padding: '6px 10px', maxWidth: '60ch' },
  '.cm-diagnostic-error': { borderLeft: '3px solid var(--bad)' },
  '.cm-panels': { backgroundColor: 'var(--ground)', color: 'var(--text)', borderColor: 'var(--line)' },
  '.cm-panel.cm-search': { padding: '6px 8px', fontSize: '12.5px' },
  '.cm-textfield, .cm-button': {
    background: 'var(--panel)',
    border: '1px solid var(--line-strong)',
    borderRadius: '5px',
    color: 'var(--text)',
    padding: '2px 8px',
    fontSize: '12.5px',
  },
  '.cm-placeholder': { color: 'var(--quiet)' },
})

const currentLine = Decoration.line({ class: 'cm-current' })

/** Marks the lines of the statement that would run. */
const currentStatement = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet

    constructor(view: EditorView) {
      this.decorations = decorationsOf(view)
    }

    update(update: ViewUpdate): void {
      if (update.docChanged || update.selectionSet) this.decorations = decorationsOf(update.view)
    }
  },
  { decorations: (plugin) => plugin.decorations },
)

function decorationsOf({ state }: EditorView): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>()
  const found = statementAt(state.doc.toString(), state.selection.main.head)
  if (found !== null && state.selection.main.empty) {
    const last = state.doc.lineAt(found.end).number
    for (let line = state.doc.lineAt(found.start).number; line <= last; line++) {
      const { from } = state.doc.line(line)
      builder.add(from, from, currentLine)
    }
  }
  return builder.finish()
}

export class SqlEditor {
  readonly #view: EditorView
  readonly #extensions: readonly Extension[]

  constructor(options: EditorOptions) {
    this.#extensions = extensionsOf(options)
    const root = options.host.attachShadow({ mode: 'open', delegatesFocus: true })
    this.#view = new EditorView({ state: this.draft(''), parent: root, root })
  }

  /** A new text, to be shown by `open`. */
  draft(text: string): Draft {
    return EditorState.create({ doc: text, extensions: [...this.#extensions] })
  }

  /** Shows another text; returns the one that was shown. */
  open(draft: Draft): Draft {
    const { state } = this.#view
    this.#view.setState(draft)
    return state
  }

  get text(): string {
    return this.#view.state.doc.toString()
  }

  get cursor(): number {
    return this.#view.state.selection.main.head
  }

  /** The selected text with its place; null if nothing is selected. */
  get selection(): { readonly text: string; readonly start: number } | null {
    const { from, to, empty } = this.#view.state.selection.main
    return empty ? null : { text: this.#view.state.sliceDoc(from, to), start: from }
  }

  /** Replaces the whole text, as one step of the history. */
  replace(text: string): void {
    const cursor = Math.min(this.cursor, text.length)
    const changes = { from: 0, to: this.#view.state.doc.length, insert: text }
    this.#view.dispatch({ changes, selection: { anchor: cursor } })
  }

  /** Replaces the selection. */
  insert(text: string): void {
    this.#view.dispatch(this.#view.state.replaceSelection(text), { scrollIntoView: true })
    this.focus()
  }

  /** Appends a statement and places the cursor in it. */
  append(statement: string): void {
    const { doc } = this.#view.state
    const before = doc.toString().trimEnd()
    const lead = before === '' ? '' : before.endsWith(';') ? '\n\n' : ';\n\n'
    const text = `${lead}${statement}\n`
    const anchor = before.length + lead.length
    this.#view.dispatch({
      changes: { from: before.length, to: doc.length, insert: text },
      selection: { anchor: anchor + statement.length },
      effects: EditorView.scrollIntoView(anchor, { y: 'nearest' }),
    })
  }

  /** Marks an error; null removes the marks. The word at the offset is underlined. */
  mark(error: { readonly offset: number; readonly message: string } | null): void {
    const { state } = this.#view
    if (error === null) {
      this.#view.dispatch(setDiagnostics(state, []))
      return
    }
    const from = Math.max(0, Math.min(error.offset, state.doc.length - 1))
    const rest = state.sliceDoc(from, from + 200)
    const word = /^("[^"]*"?|'[^']*'?|[\w$.]+)/.exec(rest)?.[0].length ?? 1
    const to = Math.min(state.doc.length, from + word)
    this.#view.dispatch(setDiagnostics(state, [{ from, to, severity: 'error', message: error.message }]))
  }

  /** Places the cursor. */
  goTo(offset: number): void {
    const anchor = Math.max(0, Math.min(offset, this.#view.state.doc.length))
    this.#view.dispatch({ selection: { anchor }, scrollIntoView: true })
    this.focus()
  }

  focus(): void {
    this.#view.focus()
  }
}

/**
 * Typing over a selection. Left to the browser, it would keep the colours of the replaced text by inline styles, which
 * the policy of the page blocks and reports.
 */
const typeOver = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { main } = view.state.selection
    const { data: text, inputType } = event
    if (inputType !== 'insertText' || text === null || main.empty || view.composing) return false
    const insert = () =>
      view.state.update(view.state.replaceSelection(text), { userEvent: 'input.type', scrollIntoView: true })
    const handlers = view.state.facet(EditorView.inputHandler)
    if (!handlers.some((handle) => handle(view, main.from, main.to, text, insert))) view.dispatch(insert())
    event.preventDefault()
    return true
  },
})

function extensionsOf({ complete, changed, keys }: EditorOptions): Extension[] {
  const own: KeyBinding[] = keys.map(({ key, run }) => ({
    key,
    preventDefault: true,
    run: () => {
      run()
      return true
    },
  }))
  return [
    Prec.highest(keymap.of(own)),
    Prec.high(keymap.of([{ key: 'Tab', run: acceptCompletion }])),
    typeOver,
    lineNumbers(),
    highlightSpecialChars(),
    history(),
    drawSelection(),
    EditorState.allowMultipleSelections.of(true),
    indentUnit.of('  '),
    EditorState.tabSize.of(2),
    sql({ dialect }),
    syntaxHighlighting(colours),
    bracketMatching(),
    closeBrackets(),
    autocompletion({ override: [completionSource(complete)], icons: false, maxRenderedOptions: 60 }),
    highlightSelectionMatches(),
    search({ top: true }),
    currentStatement,
    placeholder('SELECT …   Ctrl+Enter runs the statement at the cursor, Ctrl+Space completes'),
    EditorView.contentAttributes.of({ 'aria-label': 'SQL', tabindex: '0' }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) changed()
    }),
    keymap.of([
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...lintKeymap,
      { key: 'Mod-/', run: toggleComment },
      ...defaultKeymap,
      indentWithTab,
    ]),
    theme,
  ]
}

type Source = NonNullable<NonNullable<Parameters<typeof autocompletion>[0]>['override']>[number]

function completionSource(complete: EditorOptions['complete']): Source {
  return async ({ state, pos, explicit, aborted }) => {
    const found = await complete(state.doc.toString(), pos, explicit)
    if (found === null || found.suggestions.length === 0 || aborted) return null
    return { from: found.from, options: found.suggestions.map(optionOf), validFor: /^"?[\w$]*$/ }
  }
}

function optionOf({ label, insert, kind, detail, rank }: Suggestion) {
  return { label, apply: insert, type: kind, detail: detail === '' ? kind : detail, boost: rank }
}

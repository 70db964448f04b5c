// Dialog with the details of one table or view: its properties, columns, partitions with their data files, freshness of
// a materialized or live view, and the statement that creates it.

import { button, byId, copyToClipboard, element, errorText, notify } from './dom.js'
import {
  ddlOf,
  freshnessOf,
  type Partition,
  partitionsOf,
  type Schema,
  type Table,
  type TableColumn,
} from './schema.js'
import { type FormActions, openAlterTable } from './table-forms.js'
import { grouped, sizeText } from './values.js'

const partitionsShownMax = 500

export async function openDetails(table: Table, schema: Schema, actions: FormActions): Promise<void> {
  const dialog = byId('details', HTMLDialogElement)
  const body = element('div', { className: 'details-body' }, element('p', { className: 'quiet' }, 'Loading …'))
  const close = button('', () => dialog.close(), { icon: 'close', title: 'Close (Escape)', className: 'quiet' })
  const title = element('h2', { id: 'details-title' }, table.name, ' ', element('small', {}, table.kind))
  dialog.replaceChildren(element('div', { className: 'dialog-head' }, title, close), body)
  dialog.showModal()
  try {
    const [ddl, columns, partitions, freshness] = await Promise.all([
      ddlOf(table),
      schema.columns(table.name),
      table.kind === 'view' ? [] : partitionsOf(table.name),
      freshnessOf(table),
    ])
    const copy = (): void => void copyToClipboard(ddl).then(() => notify('Copied.'))
    const use = (): void => {
      dialog.close()
      actions.insert(ddl)
    }
    body.replaceChildren(
      factList([...tableFacts(table, partitions), ...(freshness === null ? [] : freshnessFacts(freshness))]),
      element(
        'div',
        { className: 'bar' },
        heading('Columns'),
        table.kind === 'table' ? button('Change …', () => openAlterTable(table, columns, actions)) : null,
      ),
      columnTable(columns),
      ...(partitions.length === 0 ? [] : [heading('Partitions'), partitionTable(partitions)]),
      element(
        'div',
        { className: 'bar' },
        heading('DDL'),
        button('Copy', copy, { icon: 'copy' }),
        button('Into the editor', use),
      ),
      element('pre', { className: 'code', tabIndex: 0, ariaLabel: 'DDL' }, ddl),
    )
  } catch (error) {
    body.replaceChildren(element('p', { className: 'problem', role: 'alert' }, errorText(error)))
  }
}

type Fact = readonly [name: string, value: string]

function tableFacts(table: Table, partitions: readonly Partition[]): Fact[] {
  const bytes = partitions.reduce((sum, partition) => sum + partition.bytes, 0)
  const parts = partitions.reduce((sum, partition) => sum + partition.parts, 0)
  const remote = partitions.reduce((sum, partition) => sum + partition.remote, 0)
  return [
    ...(table.rowCount === null ? [] : [['Rows', grouped(table.rowCount)] satisfies Fact]),
    ...(table.kind === 'view' ? [] : [['Size on disk', sizeText(bytes)] satisfies Fact]),
    ...(table.kind === 'view'
      ? []
      : [['Parts', `${grouped(parts)}${remote > 0 ? `, ${grouped(remote)} in object storage` : ''}`] satisfies Fact]),
    ...(table.kind === 'view' ? [] : [['Partitioned by', table.partitionBy] satisfies Fact]),
    ['Designated timestamp', table.timestamp ?? 'none'],
    ['TTL', table.ttl ?? 'none: rows are kept'],
    ...(table.dedup ? [['DEDUP', 'rows with the same keys are replaced'] satisfies Fact] : []),
    ...(table.lastWrite === null ? [] : [['Last write', table.lastWrite] satisfies Fact]),
    ...(table.newest === null ? [] : [['Newest row', table.newest] satisfies Fact]),
  ]
}

function freshnessFacts({
  refresh,
  base,
  lastRefresh,
  behind,
  problem,
  status,
}: NonNullable<Awaited<ReturnType<typeof freshnessOf>>>): Fact[] {
  const stored =
    behind === null
      ? 'not since the start of the server'
      : behind <= 0
        ? 'all of the table'
        : `all but ${grouped(behind)} transactions, which queries compute`
  return [
    ['Base table', base],
    ['Refresh', refresh],
    ['State', problem === null ? status : `${status}: ${problem}`],
    ['Last refresh', lastRefresh ?? 'none since the start of the server'],
    ['Stored', stored],
  ]
}

function factList(facts: readonly Fact[]): HTMLElement {
  return element(
    'dl',
    { className: 'facts' },
    ...facts.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]),
  )
}

function heading(text: string): HTMLElement {
  return element('h3', {}, text)
}

function columnTable(columns: readonly TableColumn[]): HTMLElement {
  const rows = columns.map(({ name, type, designated, upsertKey, indexed, distinct }) => {
    const facts = [
      ...(designated ? ['designated timestamp'] : []),
      ...(upsertKey ? ['key of DEDUP'] : []),
      ...(indexed ? ['index'] : []),
      ...(distinct > 0 ? [`${grouped(distinct)} distinct values`] : []),
    ]
    return [name, type, facts.join(', ')]
  })
  return plainTable(['Name', 'Type', ''], rows, new Set())
}

function partitionTable(partitions: readonly Partition[]): HTMLElement {
  const newest = [...partitions].reverse().slice(0, partitionsShownMax)
  const rows = newest.map(({ name, rows: count, bytes, parts, remote }) => {
    const place =
      parts === 0 ? 'in memory' : remote === 0 ? 'local' : `${grouped(remote)} of ${grouped(parts)} in object storage`
    return [name, grouped(count), sizeText(bytes), grouped(parts), place]
  })
  return plainTable(['Partition', 'Rows', 'Size', 'Parts', 'Where'], rows, new Set([1, 2, 3]))
}

/** A small table; `right`: the columns of numbers. */
export function plainTable(
  heads: readonly string[],
  rows: readonly (readonly (string | Node)[])[],
  right: ReadonlySet<number>,
): HTMLElement {
  const cell = (index: number): string => (right.has(index) ? 'right' : '')
  const head = element(
    'tr',
    {},
    ...heads.map((text, index) => element('th', { className: cell(index), scope: 'col' }, text)),
  )
  const body = rows.map((row) =>
    element('tr', {}, ...row.map((value, index) => element('td', { className: cell(index) }, value))),
  )
  return element(
    'div',
    { className: 'table-scroll', tabIndex: 0 },
    element('table', { className: 'plain' }, element('thead', {}, head), element('tbody', {}, ...body)),
  )
}

// The dialogs for importing a CSV file and for signing in.

import { importCsv, onLogin } from './api.js'
import { byId } from './element.js'

export function openDialogs(imported) {
  const dialog = byId('import')
  byId('open-import').addEventListener('click', () => {
    byId('import-result').textContent = ''
    dialog.showModal()
  })
  byId('import-start').addEventListener('click', (event) => {
    event.preventDefault()
    void startImport(imported)
  })
  // A file that is dropped anywhere on the page is imported.
  document.addEventListener('dragover', (event) => event.preventDefault())
  document.addEventListener('drop', (event) => {
    event.preventDefault()
    if (event.dataTransfer.files.length === 0) return
    byId('import-file').files = event.dataTransfer.files
    byId('import-result').textContent = ''
    if (!dialog.open) dialog.showModal()
  })
  onLogin(ask)
}

async function startImport(imported) {
  const result = byId('import-result')
  const [file] = byId('import-file').files
  if (file === undefined) {
    result.textContent = 'Choose a file first.'
    return
  }
  const start = byId('import-start')
  start.disabled = true
  result.textContent = `Sending ${file.name} …`
  try {
    const answer = await importCsv(file, parametersOf(file))
    result.textContent = words(answer)
    imported()
  } catch (error) {
    result.textContent = error.message
  } finally {
    start.disabled = false
  }
}

function parametersOf(file) {
  const value = (id) => byId(id).value.trim()
  const chosen = {
    name: value('import-name') || file.name.replace(/(\.(csv|tsv|txt))?(\.gz)?$/i, ''),
    timestamp: value('import-timestamp'),
    partitionBy: value('import-partition'),
    atomicity: value('import-atomicity'),
    forceHeader: byId('import-header').checked ? 'true' : '',
    overwrite: byId('import-overwrite').checked ? 'true' : '',
  }
  const given = Object.fromEntries(Object.entries(chosen).filter(([, text]) => text !== ''))
  return byId('import-no-timestamp').checked ? { ...given, timestamp: '' } : given
}

function words({ location, rowsImported, rowsRejected, columns, timestamp, warnings = [] }) {
  const list = columns.map(({ name, type, errors }) => `  ${name} ${type}${errors > 0 ? `, ${errors} errors` : ''}`)
  const rejected = rowsRejected > 0 ? `, ${rowsRejected} rejected` : ''
  const chosen = timestamp === undefined ? 'no designated timestamp' : `timestamp ${timestamp}`
  return [
    `${location}: ${rowsImported} rows stored${rejected}, ${chosen}`,
    ...warnings.map((text) => `  ${text}`),
    ...list,
  ].join('\n')
}

function ask(text) {
  const dialog = byId('login')
  byId('login-words').textContent = text
  byId('login-password').value = ''
  dialog.returnValue = ''
  dialog.showModal()
  return new Promise((resolve) => {
    dialog.addEventListener(
      'close',
      () => {
        const user = byId('login-user').value
        resolve(dialog.returnValue === 'start' ? { user, password: byId('login-password').value } : null)
      },
      { once: true },
    )
  })
}

// Renders the Markdown of our own documents as HTML: headings, paragraphs, lists, tables, fenced and indented code, links,
// emphasis. Anything beyond this, such as raw HTML, is shown as it is written. Plain JavaScript for deploy/build-docs.js.

const fence = /^```(.*)$/
const heading = /^(#{1,6}) (.+)$/
const item = /^([-*]|\d{1,3}\.) +(?=\S)/
const indented = /^( {4}|\t)/

/**
 * Returns the HTML, the title (the first heading) and the sections of the page: {anchor, heading, text}. `resolve` turns
 * the target of a link into an address, or into null if there is none.
 */
export function renderMarkdown(text, source, resolve) {
  const page = { source, resolve, title: '', sections: [{ anchor: '', heading: '', text: '' }] }
  const html = blocks(text.split('\n'), page)
  return { html, title: page.title, sections: page.sections.map((each) => ({ ...each, text: each.text.trim() })) }
}

function blocks(lines, page) {
  let html = ''
  let at = 0
  while (at < lines.length) {
    const line = lines[at]
    const read = line.trim() === '' ? blank : readerOf(line, lines[at + 1] ?? '')
    const block = read(lines, at, page)
    html += block.html
    at = block.end
  }
  return html
}

function readerOf(line, next) {
  if (fence.test(line)) return fencedCode
  if (heading.test(line)) return headingLine
  if (line.startsWith('|') && /^\|[-| :]+\|$/.test(next)) return table
  if (item.test(line)) return list
  return indented.test(line) ? indentedCode : paragraph
}

function blank(_lines, at) {
  return { html: '', end: at + 1 }
}

function fencedCode(lines, at, page) {
  const [, info] = fence.exec(lines[at])
  const close = lines.findIndex((line, index) => index > at && line.trim() === '```')
  if (close < 0) throw new Error(`a block is not closed [file=${page.source}, line=${at + 1}]`)
  return { html: code(lines.slice(at + 1, close), info.trim().split(' ')[0], page), end: close + 1 }
}

function indentedCode(lines, at, page) {
  let end = at
  while (end < lines.length && (indented.test(lines[end]) || lines[end].trim() === '')) end++
  while (lines[end - 1].trim() === '') end--
  return {
    html: code(
      lines.slice(at, end).map((line) => line.replace(indented, '')),
      'sh',
      page,
    ),
    end,
  }
}

function code(lines, language, page) {
  collect(lines.join(' '), page)
  return `<pre class="${escapeHtml(language)}"><code>${escapeHtml(lines.join('\n'))}\n</code></pre>\n`
}

function headingLine(lines, at, page) {
  const [, marks, text] = heading.exec(lines[at])
  const html = inline(text, page)
  const plain = plainText(html)
  const anchor = slug(plain)
  if (marks.length === 1 && page.title === '') page.title = plain
  else page.sections.push({ anchor, heading: plain, text: '' })
  return { html: `<h${marks.length} id="${anchor}">${html}</h${marks.length}>\n`, end: at + 1 }
}

function table(lines, at, page) {
  let end = at
  while (end < lines.length && lines[end].startsWith('|')) end++
  const row = (line, tag) =>
    `<tr>${cellsOf(line)
      .map((cell) => `<${tag}>${inline(cell, page)}</${tag}>`)
      .join('')}</tr>\n`
  const body = lines.slice(at + 2, end).map((line) => row(line, 'td'))
  const html = `<table>\n<thead>${row(lines[at], 'th')}</thead>\n<tbody>${body.join('')}</tbody>\n</table>`
  for (const line of lines.slice(at, end)) collect(cellsOf(line).join(' '), page)
  return { html: `<div class="table">${html}</div>\n`, end }
}

/** Bars in cells are escaped, also within code. */
function cellsOf(line) {
  const cells = line.trim().split(/(?<!\\)\|/)
  return cells.slice(1, -1).map((cell) => cell.trim().replaceAll('\\|', '|'))
}

/** A list, whose items may contain blocks that are indented as far as their text. */
function list(lines, at, page) {
  const ordered = /^\d/.test(lines[at])
  const items = []
  let end = at
  while (end < lines.length && item.test(lines[end]) && /^\d/.test(lines[end]) === ordered) {
    const indent = item.exec(lines[end])[0].length
    const content = [lines[end].slice(indent)]
    end++
    while (end < lines.length && belongs(lines, end, indent)) content.push(lines[end++].slice(indent))
    const html = blocks(content, page)
    // An item of one paragraph is shown without the distance of paragraphs.
    items.push(`<li>${html.replace(/^<p>([\s\S]*?)<\/p>\n/, '$1\n').trimEnd()}</li>\n`)
  }
  const tag = ordered ? 'ol' : 'ul'
  return { html: `<${tag}>\n${items.join('')}</${tag}>\n`, end }
}

/** Whether the line continues an item: it is indented, or empty before a line that is. */
function belongs(lines, at, indent) {
  const begins = (line) => line.startsWith(' '.repeat(indent)) && line.trim() !== ''
  if (lines[at].trim() !== '') return begins(lines[at])
  const next = lines.slice(at).find((line) => line.trim() !== '')
  return next !== undefined && begins(next)
}

function paragraph(lines, at, page) {
  let end = at + 1
  while (end < lines.length && lines[end].trim() !== '' && isProse(lines[end], lines[end + 1] ?? '')) end++
  const text = lines.slice(at, end).join('\n')
  collect(text, page)
  return { html: `<p>${inline(text, page)}</p>\n`, end }
}

/** An indented line continues a paragraph. */
function isProse(line, next) {
  const read = readerOf(line, next)
  return read === paragraph || read === indentedCode
}

const spans = new RegExp(
  [
    '(?<ticks>`+)(?<code>[\\s\\S]*?[^`])\\k<ticks>(?!`)',
    '\\\\(?<escaped>[\\\\`*_{}[\\]()#+.!|<>~-])',
    '\\[(?<label>(?:`[^`]*`|[^[\\]])*)\\]\\((?<href>[^)\\s]+)\\)',
    '<(?<address>https?:[^>\\s]+)>',
    '\\*\\*(?<strong>[\\s\\S]+?)\\*\\*',
    '(?<![\\w*])\\*(?![\\s*])(?<emphasis>[^*]+?)\\*(?!\\w)',
  ].join('|'),
  'g',
)

function inline(text, page) {
  let html = ''
  let from = 0
  for (const match of text.matchAll(spans)) {
    html += escapeHtml(text.slice(from, match.index)) + span(match.groups, page)
    from = match.index + match[0].length
  }
  return html + escapeHtml(text.slice(from))
}

function span({ code: codeText, escaped, label, href, address, strong, emphasis }, page) {
  if (codeText !== undefined) return `<code>${escapeHtml(codeText.replace(/^ (.*) $/, '$1'))}</code>`
  if (escaped !== undefined) return escapeHtml(escaped)
  if (strong !== undefined) return `<strong>${inline(strong, page)}</strong>`
  if (emphasis !== undefined) return `<em>${inline(emphasis, page)}</em>`
  const target = page.resolve(address ?? href)
  const html = address === undefined ? inline(label, page) : escapeHtml(address)
  return target === null ? html : `<a href="${escapeHtml(target)}">${html}</a>`
}

function collect(text, page) {
  page.sections.at(-1).text += ` ${text
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .replace(/\s+/g, ' ')}`
}

/** Anchor of a heading, as GitHub makes it. */
function slug(plain) {
  return plain
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

function plainText(html) {
  const entities = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&amp;': '&' }
  return html.replace(/<[^>]*>/g, '').replace(/&\w+;/g, (entity) => entities[entity] ?? entity)
}

export function escapeHtml(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
}

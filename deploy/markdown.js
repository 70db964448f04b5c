// Renders the Markdown of our documents as HTML, by the package marked. Raw HTML is shown as it is written, so that no
// document can bring a script along. Plain JavaScript for deploy/build-docs.js.

import { Marked } from 'marked'

/**
 * Returns the HTML, the title (the first heading) and the sections of the page: {anchor, heading, text}. `resolve` turns
 * the target of a link into an address, or into null if there is none.
 */
export function renderMarkdown(text, source, resolve) {
  const anchors = new Set()
  const marked = new Marked({ renderer: rendererFor(resolve, anchors) })
  const tokens = marked.lexer(text)
  let title = ''
  let line = 1
  const sections = [{ anchor: '', heading: '', text: '' }]
  for (const token of tokens) {
    if (token.type === 'heading' && token.depth === 1 && title === '') title = plainText(token)
    else if (token.type === 'heading') sections.push({ anchor: slug(token), heading: plainText(token), text: '' })
    else sections.at(-1).text += ` ${searchText(token.raw)}`
    if (token.type === 'code' && token.raw.startsWith('```') && !token.raw.trimEnd().endsWith('\n```'))
      throw new Error(`a block is not closed [file=${source}, line=${line}]`)
    line += token.raw.split('\n').length - 1
  }
  const html = marked.parser(tokens)
  return { html, title, sections: sections.map((each) => ({ ...each, text: each.text.trim() })) }
}

function rendererFor(resolve, anchors) {
  return {
    heading(token) {
      const html = this.parser.parseInline(token.tokens)
      anchors.add(slug(token))
      return `<h${token.depth} id="${slug(token)}">${html}</h${token.depth}>\n`
    },
    code({ text, lang, codeBlockStyle }) {
      const language = codeBlockStyle === 'indented' ? 'sh' : (lang ?? '').split(' ')[0]
      return `<pre class="${escapeHtml(language)}"><code>${escapeHtml(text)}\n</code></pre>\n`
    },
    link({ href, tokens }) {
      const html = this.parser.parseInline(tokens)
      const target = resolve(href)
      return target === null ? html : `<a href="${escapeHtml(target)}">${html}</a>`
    },
    table(token) {
      const row = (cells, tag, id = '') =>
        `<tr${id === '' ? '' : ` id="${escapeHtml(id)}"`}>${cells
          .map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`)
          .join('')}</tr>\n`
      const body = token.rows.map((cells) => row(cells, 'td', rowAnchor(cells, anchors))).join('')
      const table = `<table>\n<thead>${row(token.header, 'th')}</thead>\n<tbody>${body}</tbody>\n</table>`
      return `<div class="table">${table}</div>\n`
    },
    html({ text }) {
      return escapeHtml(text)
    },
  }
}

/** Text of a block as the search index holds it: without marks and without targets of links. */
function searchText(raw) {
  return raw
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^```.*$/gm, '')
    .replace(/^\|[-| :]+\|$/gm, '')
    .replace(/(?<!\\)\|/g, ' ')
    .replace(/[`*]/g, '')
    .replace(/\s+/g, ' ')
}

/** Anchor of a row whose first cell is code, such as a setting or an error; empty for others, and for repeated ones. */
function rowAnchor([first], anchors) {
  if (first === undefined || first.tokens.length !== 1 || first.tokens[0].type !== 'codespan') return ''
  const anchor = anchorOf(first.text.replaceAll('`', '').trim())
  if (anchor === '' || anchors.has(anchor)) return ''
  anchors.add(anchor)
  return anchor
}

function slug(heading) {
  return anchorOf(plainText(heading))
}

/** As GitHub makes it for headings. */
function anchorOf(text) {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

function plainText(token) {
  return token.tokens === undefined ? token.text : token.tokens.map(plainText).join('')
}

export function escapeHtml(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
}

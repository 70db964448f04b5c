// Renders README.md and docs/ into static pages below dist/docs/, with a search index. Part of deploy/build.js. Plain
// JavaScript, because it runs before anything is compiled.
//
//   dist/docs/index.html             docs/README.md
//   dist/docs/start.html             README.md
//   dist/docs/<path>.html            docs/<path>.md; a README of a folder is its index.html
//   dist/docs/search.json.gz         for each section: [page, anchor, title of the page, heading, text]
//
// The server sends the pages with a policy that allows no inline scripts and styles, so they contain none.

import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { gzipSync } from 'node:zlib'
import { home } from './build-state.js'
import { escapeHtml, renderMarkdown } from './markdown.js'

/** Calls write(path below dist/, text or bytes) for each file. */
export function renderDocs(write) {
  const sources = ['README.md', ...markdownBelow('docs')]
  const sections = []
  for (const source of sources) {
    const page = pageOf(source)
    const { html, title, sections: parts } = render(read(source), source)
    write(
      `docs/${page}`,
      document({ html, title, nav: navigationOf(page), root: '../'.repeat(page.split('/').length - 1) }),
    )
    sections.push(...parts.map(({ anchor, heading, text }) => [page, anchor, title, heading, text]))
  }
  write('docs/search.json.gz', gzipSync(JSON.stringify(sections)))
}

function read(path) {
  return readFileSync(join(home, path), 'utf8')
}

function markdownBelow(folder) {
  return readdirSync(join(home, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return markdownBelow(path)
    return entry.name.endsWith('.md') ? [path] : []
  })
}

/** Path of the page below dist/docs/. */
function pageOf(source) {
  if (source === 'README.md') return 'start.html'
  return source
    .replace(/^docs\//, '')
    .replace(/README\.md$/, 'index.md')
    .replace(/\.md$/, '.html')
}

/** The list of pages; beside pages about SQL that of the SQL reference, whose tables become lists. */
function navigationOf(page) {
  const source = page.startsWith('sql/') ? 'docs/sql/README.md' : 'docs/README.md'
  const lines = read(source).split('\n')
  const entries = lines.flatMap((line) => {
    if (/^(## |- )/.test(line)) return [line]
    const [, link] = /^\| (\[[^\]]*\]\([^)]*\)) \|/.exec(line) ?? []
    return link === undefined ? [] : [`- ${link}`]
  })
  const listed = entries.filter((entry, index) => !entry.startsWith('## ') || entries[index + 1]?.startsWith('- '))
  return render(listed.join('\n').replaceAll('\n##', '\n\n##'), source, page).html.replace(/ id="[^"]*"/g, '')
}

/** Links are relative to `page`, which is that of the source unless the text is shown on another one. */
function render(text, source, page = pageOf(source)) {
  return renderMarkdown(text, source, (href) => targetOf(href, source, page))
}

/** The address on a page; null for files that are not served. */
function targetOf(href, source, page) {
  const local = href.replace(/^http:\/\/127\.0\.0\.1:9000\//, '/')
  if (/^([a-z]+:|\/|#)/.test(local)) return local
  const [path = '', anchor] = local.split('#')
  const file = posix.join(posix.dirname(source), path)
  if (file !== 'README.md' && !/^docs\/.*\.md$/.test(file)) return null
  const target = posix.relative(posix.dirname(page), pageOf(file))
  return anchor === undefined ? target : `${target}#${anchor}`
}

function document({ html, title, nav, root }) {
  return `<!doctype html>
<html lang="en" data-root="${root === '' ? './' : root}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin">
<title>${escapeHtml(title)} · Penstock</title>
<link rel="icon" href="/console/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${root}docs.css">
<script type="module" src="${root}docs.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="home" href="${root}index.html">Penstock documentation</a>
<form role="search"><input id="search" type="search" placeholder="Search" aria-label="Search the documentation" autocomplete="off"></form>
<a href="/console/">Console</a>
</header>
<nav aria-label="Pages">
${nav}</nav>
<main id="content" tabindex="-1">
<div id="results" role="region" aria-label="Search results" aria-live="polite" hidden></div>
<article>
${html}</article>
</main>
</body>
</html>
`
}

// Search of the documentation: loads an index of all sections when the field is used first, and lists the sections that
// contain every word, those with the words in their headings first. Marks the current page in the list of pages.

const root = document.documentElement.dataset.root ?? './'
const field = document.getElementById('search')
const results = document.getElementById('results')
const article = document.querySelector('article')
const resultsMax = 30

/** Sections [page, anchor, title, heading, text]; null until they are needed. */
let sections = null

async function load() {
  sections ??= fetch(`${root}search.json`).then((response) => response.json())
  return sections
}

async function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean)
  results.hidden = words.length === 0
  article.hidden = words.length > 0
  if (words.length === 0) return
  const all = await load()
  // The field may have changed while the index was loading.
  if (words.join(' ') !== field.value.toLowerCase().split(/\s+/).filter(Boolean).join(' ')) return
  show(ranked(all, words), words)
}

/** Sections by the number of words in their title and heading. */
export function ranked(all, words) {
  return all
    .map((section) => ({ section, score: scoreOf(section, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ section }) => section)
}

/** 0 if a word is missing. */
function scoreOf([, , title, heading, text], words) {
  const [high, middle, low] = [heading, title, text].map((part) => part.toLowerCase())
  let score = 0
  for (const word of words) {
    if (high.split(/\W+/).includes(word)) score += 12
    else if (high.includes(word)) score += 6
    else if (middle.split(/\W+/).includes(word)) score += heading === '' ? 14 : 4
    else if (middle.includes(word)) score += 3
    else if (low.includes(word)) score += 1
    else return 0
  }
  return score
}

function show(found, words) {
  const list = document.createElement('ol')
  for (const [page, anchor, title, heading, text] of found.slice(0, resultsMax)) {
    const link = document.createElement('a')
    link.href = `${root}${page}${anchor === '' ? '' : `#${anchor}`}`
    link.textContent = heading === '' ? title : `${title}: ${heading}`
    link.addEventListener('click', close)
    const excerpt = document.createElement('p')
    excerpt.textContent = excerptOf(text, words)
    const item = document.createElement('li')
    item.append(link, excerpt)
    list.append(item)
  }
  const count = document.createElement('p')
  const more = found.length > resultsMax ? `, the first ${resultsMax}` : ''
  count.textContent = found.length === 0 ? 'Nothing found.' : `${found.length} sections${more}`
  results.replaceChildren(count, list)
}

function excerptOf(text, words) {
  const at = Math.max(0, ...words.map((word) => text.toLowerCase().indexOf(word)))
  const begin = Math.max(0, at - 60)
  return `${begin > 0 ? '… ' : ''}${text.slice(begin, begin + 180)}${text.length > begin + 180 ? ' …' : ''}`
}

/** A result may be on this page. */
function close() {
  field.value = ''
  results.hidden = true
  article.hidden = false
}

field.addEventListener('input', () => void search())
field.addEventListener('focus', () => void load())
field.form.addEventListener('submit', (event) => {
  event.preventDefault()
  results.querySelector('a')?.click()
})
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && document.activeElement === field) close()
  if (event.key !== '/' || event.ctrlKey || event.metaKey || document.activeElement === field) return
  event.preventDefault()
  field.focus()
})
for (const link of document.querySelectorAll('nav a'))
  if (link.pathname === location.pathname) link.setAttribute('aria-current', 'page')

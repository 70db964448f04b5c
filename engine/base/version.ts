// The version of this product. A test compares it with package.json, which the compiled server need not have beside it.

export const productVersion = '0.1.0'

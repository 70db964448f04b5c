// What is noted about an object for as long as it lives, out of sight: copies made by spreading, messages to other threads
// and JSON know nothing of it.
//
// A WeakMap would say the same. But a scavenge of V8 takes the values of every weak map for alive, whatever their keys are,
// so that all that one query notes about its plan stays until the next collection of everything: 36 KB a query, copied by
// scavenges that then took 4 to 7 ms of the main thread instead of 1. Private fields of the object itself are gone with it.
// WeakMap is right where keys live long or are few.

export interface Notes<K extends object, V> {
  get(object: K): V | undefined
  set(object: K, value: V): void
}

/** Its "instance" is the object that it is given, so that a subclass adds its private fields to that. */
const Itself = function itself(object: object): object {
  return object
} as unknown as new (
  object: object,
) => object

export function notesAbout<K extends object, V>(): Notes<K, V> {
  return class Note extends Itself {
    #value: V

    constructor(object: K, value: V) {
      super(object)
      this.#value = value
    }

    static get(object: K): V | undefined {
      return #value in object ? (object as Note).#value : undefined
    }

    static set(object: K, value: V): void {
      if (#value in object) (object as Note).#value = value
      else new Note(object, value)
    }
  }
}

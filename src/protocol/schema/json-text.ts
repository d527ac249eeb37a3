/** Text between the quotes of a JSON string. Most needs no escapes and is handed on as it is: no copy, one test. */
/** Neither control characters nor quotes, backslashes or surrogates; those JSON.stringify looks at. */
const plain = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;

export function escaped(text: string): string {
  return plain.test(text) ? text : JSON.stringify(text).slice(1, -1);
}

/** Parses a YAML text like the library's `parseDocument`, but in parts: requests are served meanwhile. */

import type { CST, Document } from 'yaml';
import { nextTurn, pauseEvery } from '../platform/time/next-turn.ts';

/** Lexemes read in one turn: a few milliseconds. */
const LEXEMES_AT_ONCE = 2000;

/** Errors in the text are in the document. @throws {RangeError} if the text overflows the parser's stack. */
export async function parseInParts(text: string): Promise<Document.Parsed> {
  // Loaded here, so that a sidecar without a file does not carry the parser.
  const { Composer, Lexer, Parser, YAMLParseError } = await import('yaml');
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  const pause = pauseEvery(LEXEMES_AT_ONCE);
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    const turn = pause();
    if (turn !== undefined) await turn;
  }
  for (const token of parser.end()) tokens.push(token);
  await nextTurn();
  // Its warnings would go to standard error and quote the text.
  const composer = new Composer({ uniqueKeys: true, strict: true, prettyErrors: false, logLevel: 'error' });
  const [document, second] = composer.compose(tokens, true, text.length);
  if (document === undefined) throw new RangeError('a text without a document');
  if (second !== undefined) {
    const [from, to] = second.range;
    document.errors.push(new YAMLParseError([from, to], 'MULTIPLE_DOCS', 'a second document'));
  }
  await nextTurn();
  return document as Document.Parsed;
}

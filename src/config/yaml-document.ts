/** The document of a YAML text, as `parseDocument` of the library makes it, but in parts: requests go on meanwhile. */

import type { CST, Document } from 'yaml';
import { nextTurn, pauseEvery } from '../next-turn.ts';

/** Words of the text that are read in one turn: a few milliseconds. */
const LEXEMES_AT_ONCE = 2000;

/** Errors in the text are in the document. @throws {RangeError} where it takes the parser more than its stack. */
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
  // Its warnings go to standard error, with what they are about.
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

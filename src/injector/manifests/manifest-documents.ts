/** Manifests as documents of YAML. What is wrong with them is told by code and place: a Secret may stand among them. */

import { type Document, LineCounter, parseAllDocuments } from 'yaml';
import { ALIASES, expectedYaml } from '../../config/yaml-mistakes.ts';

export interface ManifestDocuments {
  readonly documents: readonly Document[];
  /** What each of them holds; nothing where there are problems. */
  readonly contents: readonly unknown[];
  readonly problems: readonly string[];
}

/** YAML of one or more documents, or JSON. */
export function readManifestDocuments(text: string): ManifestDocuments {
  const lineCounter = new LineCounter();
  // Merge keys (`<<`) are resolved as kubectl resolves them. Pretty errors quote the line, and warnings what they are about.
  const documents: readonly Document[] = parseAllDocuments(text, {
    merge: true,
    prettyErrors: false,
    lineCounter,
    logLevel: 'error',
  });
  const mistakes = documents.flatMap(({ errors }) =>
    errors.map(({ code, pos: [from] }) => {
      const { line, col } = lineCounter.linePos(from);
      return `line ${line}, column ${col}: expected ${expectedYaml('valid YAML or JSON', code)}`;
    }),
  );
  if (mistakes.length > 0) return { documents, contents: [], problems: mistakes };
  const problems: string[] = [];
  const contents = documents.map((document, index) => contentOf(document, index, problems));
  return { documents, contents: problems.length > 0 ? [] : contents, problems };
}

/** A document whose aliases cannot be resolved (`host: *.example.com`) joins `problems`. */
function contentOf(document: Document, index: number, problems: string[]): unknown {
  try {
    return document.toJS();
  } catch {
    problems.push(`document ${index + 1}: expected ${ALIASES}`);
    return undefined;
  }
}

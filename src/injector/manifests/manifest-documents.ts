/** Manifests as YAML documents. Mistakes are reported by code and place only: a Secret may be among them. */

import { type Document, LineCounter, parseAllDocuments } from 'yaml';
import { ALIASES, expectedYaml } from '../../config/yaml.ts';

interface ManifestDocuments {
  readonly documents: readonly Document[];
  /** The content of each document; empty if there are problems. */
  readonly contents: readonly unknown[];
  readonly problems: readonly string[];
}

/** YAML of one or more documents, or JSON. */
export function readManifestDocuments(text: string): ManifestDocuments {
  const lineCounter = new LineCounter();
  // Merge keys (`<<`) are resolved as kubectl does. Pretty errors would quote the line, and warnings their subject.
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

/** A document whose aliases cannot be resolved (`host: *.example.com`) is added to `problems`. */
function contentOf(document: Document, index: number, problems: string[]): unknown {
  try {
    return document.toJS();
  } catch {
    problems.push(`document ${index + 1}: expected ${ALIASES}`);
    return undefined;
  }
}

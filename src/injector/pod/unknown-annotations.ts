import type { Problem } from '../../config/problems.ts';
import { didYouMean } from '../../config/suggestion.ts';
import { ANNOTATION_PREFIX, ANNOTATIONS } from './annotations.ts';

/** What the API server takes of a name behind the prefix; nothing longer was mistyped. */
const MAX_OWN_NAME = 63;

/** A suggestion costs time, and an unchecked pod may have any number of names. */
const MOST_SUGGESTIONS = 10;

/** Names behind our prefix that are none of ours: they may be mistyped. */
export function unknownAnnotations(annotations: Readonly<Record<string, string>>): Problem[] {
  const names = ANNOTATIONS.map((name) => name.slice(ANNOTATION_PREFIX.length));
  return Object.keys(annotations)
    .filter((name) => name.startsWith(ANNOTATION_PREFIX))
    .map((name) => name.slice(ANNOTATION_PREFIX.length))
    .filter((own) => !names.includes(own))
    .map((own, index) => {
      const suggests = index < MOST_SUGGESTIONS && own.length <= MAX_OWN_NAME;
      const suggestion = suggests ? didYouMean(own, names, ANNOTATION_PREFIX) : '';
      return {
        key: `${ANNOTATION_PREFIX}${own.slice(0, MAX_OWN_NAME)}`,
        expected: `an annotation that there is${suggestion}`,
      };
    });
}

import { didYouMean } from '../../config/suggestion.ts';
import type { Problem } from '../../platform/problems.ts';
import { ANNOTATION_PREFIX, ANNOTATIONS } from './annotations.ts';

/** The API server's limit for a name after the prefix; a longer one is no mistyped name of ours. */
const MAX_OWN_NAME = 63;

/** A suggestion takes time, and an unchecked pod may have any number of names. */
const MAX_SUGGESTIONS = 10;

/** Unknown names with our prefix: they may be mistyped. */
export function unknownAnnotations(annotations: Readonly<Record<string, string>>): Problem[] {
  const names = ANNOTATIONS.map((name) => name.slice(ANNOTATION_PREFIX.length));
  return Object.keys(annotations)
    .filter((name) => name.startsWith(ANNOTATION_PREFIX))
    .map((name) => name.slice(ANNOTATION_PREFIX.length))
    .filter((own) => !names.includes(own))
    .map((own, index) => {
      const suggests = index < MAX_SUGGESTIONS && own.length <= MAX_OWN_NAME;
      const suggestion = suggests ? didYouMean(own, names, ANNOTATION_PREFIX) : '';
      return {
        key: `${ANNOTATION_PREFIX}${own.slice(0, MAX_OWN_NAME)}`,
        expected: `an annotation that there is${suggestion}`,
      };
    });
}

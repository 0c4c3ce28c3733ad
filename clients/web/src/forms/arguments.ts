/** Arguments of a call as they are written: checked by the tool's schema before they are sent. */

import { errorOf, FieldError } from "./answer";
import { problemOf } from "./checks";
import { isSchema, type Schema } from "./simplify";

/** Return arguments that were written as JSON. Throws a `FieldError` for what the tool refuses. */
export function parseArguments(text: string, schema: Schema | undefined): Schema {
  const value = parsed(text);
  if (!isSchema(value)) throw new FieldError("", "The arguments must be a JSON object.");
  const problem = schema && problemOf(schema, value, schema);
  if (problem !== undefined) throw errorOf(problem);
  return value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The arguments of a call by their names, or undefined if they are not a JSON object (yet). */
export function namedArguments(text: string): Schema | undefined {
  const value = parsed(text || "{}");
  return isSchema(value) ? value : undefined;
}

/** The schema of a tool as one that has a form: an object with properties. */
export function formSchema(parameters: unknown): Schema | undefined {
  return isSchema(parameters) && isSchema(parameters.properties) ? parameters : undefined;
}

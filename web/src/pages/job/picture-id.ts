/** Where downloads find the picture of an answer. */
export const PICTURE = "picture";
